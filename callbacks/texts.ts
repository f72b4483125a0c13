/**
 * Every word that a person reads in the browser, in English.
 *
 * Names arrive as `Shown`, so a name that was not
 * cleaned cannot stand in a sentence. A text with a slot for markup returns its pieces in the order of the
 * language. It states only what the server knows: no word here promises what a provider will do.
 */
import type { Html } from './pages/html.ts';
import type { Shown } from './pages/shown.ts';

/** A sentence in pieces: plain text, and markup that the page put into a slot. */
export type Sentence = readonly (string | Html)[];

/** Ways in which a visit can end without what it was made for; each has its own page text. */
export const REFUSED_VARIANTS = [
  'wrong-person',
  'sign-in-needed',
  'link-unknown',
  'expired',
  'cancelled',
  'task-ended',
  'declined-by-client',
  'already-done',
  'denied',
  'provider-trouble',
  'wrong-account',
  'permission-missing',
  'attempt-lost',
  'attempt-used',
  'other-browser',
  'answer-mixed-up',
  'answer-unknown',
  'too-many-attempts',
  'form-forged',
  'rate-limited',
  'misconfigured',
  'storage-busy',
  'internal',
] as const;

/** One of the ways above. */
export type RefusedVariant = (typeof REFUSED_VARIANTS)[number];

/** What the texts of a refusal may mention. Names are absent where the visitor must not learn them. */
export interface RefusedNames {
  readonly server: Shown;
  /** The provider, or a neutral word when it is not known or not to be told. */
  readonly provider: string;
  readonly expectedAccount: Shown | undefined;
  readonly actualAccount: Shown | undefined;
}

/** The words of one refusal: what happened, what it means, what to do next. */
export interface RefusedText {
  readonly heading: string;
  readonly meaning: string;
  readonly next: string;
}

const absolute = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'long',
  timeStyle: 'short',
  timeZone: 'UTC',
});

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });

const list = new Intl.ListFormat('en', { type: 'conjunction' });

const count = (n: number, one: string, many: string): string => `${n} ${n === 1 ? one : many}`;

const MINUTE_MS = 60_000;

const REFUSED: Record<RefusedVariant, (names: RefusedNames) => RefusedText> = {
  'wrong-person': ({ server }) => ({
    heading: 'This link is for somebody else',
    meaning: `You are signed in to ${server}, but this link was made for somebody else. Nothing was changed.`,
    next:
      'If it is meant for you, sign in as the person who asked for it. Otherwise close this page. The ' +
      'link still works for its owner.',
  }),
  'sign-in-needed': ({ server }) => ({
    heading: 'Sign in first',
    meaning: `You are not signed in to ${server}, or your sign-in has ended. Nothing was changed.`,
    next: 'Open the link from your chat again and sign in.',
  }),
  'link-unknown': () => ({
    heading: 'This link does not work',
    meaning: 'There is no such link here. It may have been cut off when it was copied.',
    next: 'Go back to your chat and open the link there, in full.',
  }),
  expired: () => ({
    heading: 'This link is too old',
    meaning: 'The time to answer is over, so the task that was waiting has ended. Nothing was shared.',
    next: 'Go back to your chat and ask the agent to start the task again. You will get a new link.',
  }),
  cancelled: () => ({
    heading: 'This task was cancelled',
    meaning: 'The task that was waiting for you was cancelled, so there is nothing left to do here.',
    next: 'You can close this page. If you still need the task, ask the agent in your chat to restart it.',
  }),
  'task-ended': () => ({
    heading: 'This task has ended',
    meaning: 'The task behind this link is no longer waiting for you.',
    next: 'Go back to your chat to see how it ended. The agent can start it again if needed.',
  }),
  'declined-by-client': () => ({
    heading: 'The request was declined',
    meaning: 'Your chat app declined to ask you for this sign-in, so the task has ended.',
    next: 'If that was not your wish, ask the agent in your chat to start the task again.',
  }),
  'already-done': () => ({
    heading: 'This is already done',
    meaning: 'The sign-in for this link is complete. There is nothing left to do here.',
    next: 'Return to your chat.',
  }),
  denied: ({ provider }) => ({
    heading: `${provider} did not give access`,
    meaning: `Access was denied at ${provider}, by you or a rule of your organisation. Nothing was stored.`,
    next: 'Return to your chat. If you change your mind, ask the agent to start the task again.',
  }),
  'provider-trouble': ({ provider }) => ({
    heading: `${provider} did not answer properly`,
    meaning: `The sign-in could not be finished because of trouble at ${provider}. Nothing was stored.`,
    next: 'Wait a moment and try again.',
  }),
  'wrong-account': ({ provider, expectedAccount, actualAccount }) => ({
    heading: 'That was another account',
    meaning:
      (actualAccount === undefined
        ? `You signed in to ${provider} with another account than before.`
        : `You signed in to ${provider} as ${actualAccount}.`) +
      (expectedAccount === undefined
        ? ' This task needs the account that you used before.'
        : ` This task needs the account ${expectedAccount}.`) +
      ' Nothing was stored.',
    next: `Try again and choose the right account. You may have to sign out at ${provider} first.`,
  }),
  'permission-missing': ({ provider }) => ({
    heading: 'A permission is missing',
    meaning: `${provider} gave less access than the task needs, so the task cannot go on yet.`,
    next:
      `Try again and leave every permission switched on. If ${provider} does not offer one, your ` +
      'organisation may have to allow it.',
  }),
  'attempt-lost': ({ provider }) => ({
    heading: 'Please sign in once more',
    meaning: `The answer from ${provider} was lost on its way, and it can be used only once.`,
    next: 'Start the sign-in again. Your link still works.',
  }),
  'attempt-used': () => ({
    heading: 'This page was used before',
    meaning: 'Each sign-in can be finished once, and this one was. Nothing was changed now.',
    next: 'Return to your chat. If the task is still waiting, open its link again.',
  }),
  'other-browser': () => ({
    heading: 'Finish where you started',
    meaning: 'This sign-in was started in another browser, or cookies are blocked. Nothing was stored.',
    next: 'Open the link from your chat in this browser and go through all steps here.',
  }),
  'answer-mixed-up': () => ({
    heading: 'This answer came from the wrong place',
    meaning:
      'The answer names another sign-in service than the one you were sent to. To be safe, nothing was ' +
      'used or stored.',
    next: 'Open the link from your chat again. If this happens twice, tell whoever runs this server.',
  }),
  'answer-unknown': () => ({
    heading: 'No sign-in belongs to this page',
    meaning:
      'The address of this page is incomplete, or its sign-in is long over. Nothing was changed, and a ' +
      'sign-in under way goes on.',
    next: 'Open the link from your chat again.',
  }),
  'too-many-attempts': () => ({
    heading: 'Too many tries',
    meaning: 'This sign-in was started too often, so the link does not start another one.',
    next:
      'If one sign-in is still open in another tab, finish it there. Otherwise ask the agent in your ' +
      'chat to start the task again.',
  }),
  'form-forged': () => ({
    heading: 'That button press did not count',
    meaning:
      'It did not come from a current page of ours: perhaps the page was open for long, or cookies are ' +
      'blocked. Nothing was changed.',
    next: 'Open the page again and press the button there.',
  }),
  'rate-limited': () => ({
    heading: 'Too many requests',
    meaning: 'There were more requests from your network than we allow at a time. Nothing was changed.',
    next: 'Wait a minute, then load this page again.',
  }),
  misconfigured: ({ server, provider }) => ({
    heading: `${server} needs a repair`,
    meaning: `${server} is not set up correctly for ${provider}. It is not your fault. Nothing was stored.`,
    next: 'Trying again will not help. Please tell whoever runs this server.',
  }),
  'storage-busy': ({ server }) => ({
    heading: 'Please try again in a moment',
    meaning: `${server} cannot reach its storage right now. Nothing was changed.`,
    next: 'Wait a moment and try again. Your link keeps its time limit.',
  }),
  internal: ({ server }) => ({
    heading: 'Something went wrong on our side',
    meaning: `${server} met an error that it did not expect. You did nothing wrong.`,
    next: 'Go back to your chat to see whether the task is still waiting. If so, open its link again.',
  }),
};

/** The texts in English. */
export const texts = {
  lang: 'en',

  /** Title of a browser tab: what this page is, then whose it is. */
  title: (page: string, server: Shown): string => `${page} – ${server}`,
  /** In the footer, so that a person can compare it with the address bar. */
  footer: (server: Shown, host: Html): Sentence => [`${server}, at `, host],
  myConnections: 'My connections',
  home: 'Home',
  aProvider: 'the provider',
  you: 'You are signed in as',

  /** "30 November 2026 at 14:05 UTC". */
  moment: (ms: number): string => `${absolute.format(ms)} UTC`,
  /** "30 November 2026": for the past, where the hour does not matter. */
  day: (ms: number): string => day.format(ms),
  /** How long until a moment; rounded down, so that nobody is promised more time than there is. */
  left: (ms: number): string => {
    if (ms <= 0) return 'now over';
    const minutes = Math.floor(ms / MINUTE_MS);
    if (minutes < 1) return 'in less than a minute';
    if (minutes < 120) return `in ${count(minutes, 'minute', 'minutes')}`;
    if (minutes < 48 * 60) return `in ${count(Math.floor(minutes / 60), 'hour', 'hours')}`;
    return `in ${count(Math.floor(minutes / (24 * 60)), 'day', 'days')}`;
  },
  linkLasts: (until: Html, left: string): Sentence => ['This link works until ', until, ` (${left}).`],
  linkOver: (until: Html): Sentence => ['This link worked until ', until, '.'],

  scopes: {
    /** A scope that the provider's profile does not put into words. */
    unexplained: 'We have no description of this one, only its name:',
    added: 'New',
    none: (provider: Shown): string =>
      `${provider} does not name single permissions: it shows you what you allow before you agree.`,
    noneHeld: (provider: Shown): string =>
      `As you agreed with ${provider}, which names no single permissions.`,
  },

  connect: {
    heading: {
      first: (provider: Shown): string => `Connect your ${provider} account`,
      'step-up': (provider: Shown): string => `Allow more access to ${provider}`,
      'signed-out': (provider: Shown): string => `Sign in to ${provider} again`,
      'approve-client': (provider: Shown): string => `Share your ${provider} connection?`,
      choose: (provider: Shown): string => `Choose a ${provider} account`,
    },
    lede: {
      first: (tool: Shown, provider: Shown): string =>
        `A task you started, “${tool}”, has stopped. It needs access to your ${provider} account to go on.`,
      'step-up': (tool: Shown, provider: Shown): string =>
        `A task you started, “${tool}”, has stopped. It needs more access to ${provider} than you have ` +
        'allowed so far.',
      'signed-out': (tool: Shown, provider: Shown): string =>
        `A task you started, “${tool}”, has stopped. ${provider} no longer accepts the sign-in that ` +
        'you gave earlier.',
      'approve-client': (tool: Shown, provider: Shown): string =>
        `A task, “${tool}”, was started from an app that has not used your ${provider} connection ` +
        'before. The task waits for your answer.',
      choose: (tool: Shown, provider: Shown): string =>
        `A task you started, “${tool}”, has stopped. Tell it which of your ${provider} accounts to use.`,
    },
    who: 'Who asks',
    asker: 'Server',
    via: 'Through the app',
    unnamedApp: 'An app without a name',
    unverified: 'not verified',
    unverifiedMeaning: 'The app chose this name itself. If you did not start a task there, press “Not now”.',
    appId: 'App ID, checked by this server:',
    person: 'Signed in as',
    notYou: 'Not you?',
    notYouLabel: (person: Shown): string => `Not you? Sign in as someone other than ${person}`,
    account: 'Account',
    called: (name: Shown): string => `The one that your chat calls “${name}”`,
    sameAccount: (account: Shown): string => `Sign in with the same account as before: ${account}.`,
    accountsLegend: 'Which account?',
    sameAgain: 'The same as before',
    lastUsed: (at: Html): Sentence => ['Last used ', at],
    neverUsed: 'Not used yet',
    otherAccount: 'Another account',
    otherAccountMeaning: (provider: Shown): string => `You choose it at ${provider}.`,
    asks: {
      first: (provider: Shown): string => `What the task may do at ${provider}`,
      'step-up': (provider: Shown): string => `What the task may do at ${provider}`,
      'signed-out': (provider: Shown): string => `What the task may do at ${provider}, as before`,
      'approve-client': (provider: Shown): string => `What the app’s tasks may then do at ${provider}`,
      choose: (provider: Shown): string => `What the task may do at ${provider}`,
    },
    nextHeading: 'What happens next',
    go: (host: Html): Sentence => ['You go to ', host, ' and sign in there.'],
    comeBack: (server: Shown): string => `You come back here, to ${server}.`,
    goesOn: 'The task goes on from where it stopped.',
    approveStays: (provider: Shown): string =>
      `You stay here. The connection is used as it is; you need not sign in to ${provider}.`,
    approveEnds: 'You can end this at any time under “My connections”.',
    chooseStays: (host: Html): Sentence => [
      'With an account from the list, the task goes on at once. For another one you go to ',
      host,
      ' first.',
    ],
    secrecy: 'The agent never sees your password or any key to your account.',
    continue: (provider: Shown): string => `Continue to ${provider}`,
    continueHere: 'Continue',
    approve: 'Allow',
    decline: 'Not now',
  },

  signIn: {
    heading: (server: Shown): string => `Sign in to ${server}`,
    nobody: (server: Shown): string =>
      'You opened a link from your chat. To make sure that it was made for you, please sign in to ' +
      `${server} first.`,
    connections: (server: Shown): string => `To see your connections, please sign in to ${server} first.`,
    stale: (server: Shown): string =>
      `You signed in to ${server} more than 10 minutes ago. For this step we ask you to sign in once more.`,
    how: (host: Html): Sentence => ['You sign in at ', host, ' and come back here.'],
    nothingYet: 'Nothing is shared with anybody by signing in.',
    button: (server: Shown): string => `Sign in to ${server}`,
    someoneElse: 'Sign in as someone else',
  },

  leaving: {
    heading: (provider: Shown): string => `Taking you to ${provider}`,
    next: (host: Html): Sentence => ['Your browser goes on to ', host, '.'],
    check: 'Before you type a password there, check that the address bar shows this name.',
    link: (provider: Shown): string => `Go to ${provider} now`,
    back: 'Afterwards you come back here by yourself.',
  },

  done: {
    heading: {
      connected: 'Done. Return to your chat',
      late: 'Connected, but too late for the task',
      approved: 'Done. Return to your chat',
      saved: 'Saved. Return to your chat',
      declined: 'Declined. Return to your chat',
    },
    meaning: {
      connected: (provider: Shown, account: Shown | undefined): string =>
        account === undefined
          ? `${provider} is connected.`
          : `${provider} is connected with the account ${account}.`,
      late: (provider: Shown, account: Shown | undefined): string =>
        account === undefined
          ? `${provider} is connected.`
          : `${provider} is connected with the account ${account}.`,
      approved: (provider: Shown): string => `The app may now use your ${provider} connection.`,
      saved: (provider: Shown): string =>
        `What you entered for ${provider} is stored, encrypted, on this server only.`,
      declined: (provider: Shown): string =>
        `Nothing was shared, and ${provider} was not asked for anything.`,
    },
    after: {
      connected: 'Your task goes on by itself. You can close this page.',
      late:
        'The task that was waiting had already ended and does not go on. Ask the agent in your chat to ' +
        'start it again; you will not have to sign in a second time.',
      approved: 'Your task goes on by itself. You can close this page.',
      saved: 'Your task goes on by itself. You can close this page.',
      declined:
        'The task waits until the time of its link is over, and ends without access. If you change your ' +
        'mind before that, open the link in your chat again.',
    },
    alsoWoken: (others: number): string =>
      others === 1
        ? 'One more task was waiting for the same sign-in. It goes on as well.'
        : `${others} more tasks were waiting for the same sign-in. They go on as well.`,
  },

  refused: REFUSED,
  refusedMissing: 'Missing',
  refusedEvent: 'If you report this, give this number:',
  retry: 'Try again',
  startAgain: 'Start again',

  credential: {
    heading: (provider: Shown): string => `Enter your key for ${provider}`,
    lede: (tool: Shown, provider: Shown): string =>
      `A task you started, “${tool}”, has stopped. ${provider} has no sign-in for it, so the task ` +
      'needs what you enter here.',
    where: 'Where to find it',
    secrecy:
      'It is stored encrypted on this server and used only to reach the provider. The agent never sees ' +
      'it, and this page never shows it again.',
    fieldProblems: {
      empty: 'please fill this in.',
      tooLong: (most: number): string => `at most ${most} characters. Is it the right one?`,
      characters: 'it has characters that do not belong there. Please copy it again.',
      refused: (provider: Shown): string => `${provider} did not accept it.`,
    },
    problems: (n: number): string =>
      n === 1 ? 'One field needs your attention' : `${n} fields need your attention`,
    refill: 'For your safety the fields are empty again: please enter everything once more.',
    optional: 'optional',
    save: 'Save and go on',
  },

  connections: {
    heading: 'My connections',
    lede: (server: Shown): string =>
      `The accounts that ${server} may use for tasks you start. You can disconnect each of them at any time.`,
    empty: 'You have no connections',
    emptyMeaning:
      'When a task needs one of your accounts, you get a link in your chat. After you have signed in ' +
      'there, the account is listed here.',
    account: 'Account',
    unnamedAccount: 'account without a name',
    status: {
      active: 'Ready',
      needs_sign_in: 'Needs sign-in',
      revoked: 'Disconnected',
    },
    may: 'Permissions',
    created: 'Connected',
    lastUsed: 'Last used',
    never: 'not yet',
    clients: 'Apps',
    noClients: 'no app may use it yet',
    waiting: 'Tasks that wait for it',
    waitingUntil: (task: Shown, until: Html, left: string): Sentence => [
      `${task}, until `,
      until,
      ` (${left})`,
    ],
    open: 'Answer',
    openLabel: (task: Shown): string => `Answer for ${task}`,
    disconnect: 'Disconnect',
    disconnectLabel: (provider: Shown, account: Shown): string => `Disconnect ${provider}, ${account}`,
    notice: {
      disconnected: (provider: Shown): string =>
        `${provider} is disconnected, and its key was revoked at ${provider}.`,
      forgotten: (provider: Shown): string =>
        `${provider} is disconnected here. To withdraw the permission itself, visit the settings of ` +
        `your ${provider} account.`,
      saved: (provider: Shown): string => `${provider} is connected.`,
    },
  },

  disconnect: {
    heading: (provider: Shown): string => `Disconnect ${provider}?`,
    about: (provider: Shown, account: Shown): string =>
      `This ends the connection to ${provider} with the account ${account}.`,
    ends: 'What changes',
    tasks: (titles: readonly Shown[]): string =>
      titles.length === 0
        ? 'No task waits for this connection at the moment.'
        : `Tasks that wait for it stay without access: ${list.format(titles)}.`,
    revokes: (provider: Shown): string => `The key is deleted here and revoked at ${provider}.`,
    forgets: (provider: Shown): string =>
      `The key is deleted here. ${provider} cannot revoke this key alone without ending other ` +
      `connections, so the permission stays listed in your ${provider} account until you remove it ` +
      'there.',
    again: 'The next task that needs it will ask you to sign in again.',
    confirm: 'Disconnect',
    keep: 'Keep it',
  },

  homePage: {
    heading: (server: Shown): string => server,
    lede: 'This server runs tasks for AI agents and asks you before it touches any of your accounts.',
    steps: [
      'When a task needs an account of yours, it stops and you get a link in your chat.',
      'You sign in with the provider, in your own browser.',
      'The task goes on. The agent never sees your password or any key to your account.',
    ],
    how: 'How it works',
    endpoint: 'Address for MCP clients',
  },
} as const;
