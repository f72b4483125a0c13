/**
 * Every page in every variant, with sample content. Each string that somebody else chose passes through
 * `word`, so that a test can put hostile strings in all of those places at once and keep the structure.
 */
import { connectPage, type ConnectModel, type ConnectReason } from '../../callbacks/pages/connect.ts';
import { connectionsPage, type ConnectionsModel } from '../../callbacks/pages/connections.ts';
import { credentialPage, type CredentialModel } from '../../callbacks/pages/credential.ts';
import { disconnectPage, type DisconnectModel } from '../../callbacks/pages/disconnect.ts';
import { donePage, type DoneModel } from '../../callbacks/pages/done.ts';
import { homePage } from '../../callbacks/pages/home.ts';
import { leavingPage } from '../../callbacks/pages/leaving.ts';
import type { Site } from '../../callbacks/pages/page.ts';
import { refusedPage, type RefusedModel } from '../../callbacks/pages/refused.ts';
import { signInPage, type SignInModel } from '../../callbacks/pages/sign-in.ts';
import { REFUSED_VARIANTS } from '../../callbacks/texts.ts';

/** Maps a sample string to the one that is rendered. */
export type Word = (sample: string) => string;

/** A rendered page and what to call it. */
export interface SamplePage {
  readonly name: string;
  readonly html: string;
}

export const NOW_MS = Date.UTC(2026, 10, 30, 13, 53, 20);
export const DEADLINE_MS = Date.UTC(2026, 10, 30, 14, 5);
export const AUTHORIZATION_URL =
  'https://github.com/login/oauth/authorize?client_id=abc&state=s1&code_challenge=c&response_type=code';

const same: Word = (sample) => sample;
const link = { deadlineMs: DEADLINE_MS, nowMs: NOW_MS };

export const site = (word: Word = same): Site => ({
  serverName: word('Northwind Ingest'),
  host: 'tasks.northwind.example',
  homePath: '/',
  connectionsPath: '/connections',
});

const target = (word: Word, path: string) => ({ path, csrf: word('csrf-value-1') });

const REASONS = (word: Word): readonly { name: string; reason: ConnectReason }[] => [
  { name: 'first', reason: { kind: 'first' } },
  { name: 'step-up', reason: { kind: 'step-up', account: word('alice-dev') } },
  { name: 'signed-out', reason: { kind: 'signed-out', account: word('alice-dev'), mayChange: false } },
  {
    name: 'signed-out-may-change',
    reason: { kind: 'signed-out', account: word('alice-dev'), mayChange: true },
  },
  { name: 'approve-client', reason: { kind: 'approve-client', account: word('alice-dev') } },
  {
    name: 'choose',
    reason: {
      kind: 'choose',
      mayAdd: true,
      accounts: [
        { id: word('con_1'), label: word('alice-dev'), lastUsedMs: NOW_MS - 86_400_000 },
        { id: word('con_2'), label: word('alice@example.com') },
      ],
    },
  },
];

export const connectModel = (word: Word = same): ConnectModel => ({
  site: site(word),
  nowMs: NOW_MS,
  deadlineMs: DEADLINE_MS,
  form: target(word, '/connect/h4ndle'),
  switchPerson: target(word, '/sign-in/h4ndle'),
  person: word('alice@example.com'),
  client: { name: word('Claude Desktop'), id: word('https://claude.example/oauth/client.json') },
  tool: word('Import issues'),
  provider: { name: word('GitHub'), host: word('github.com') },
  scopes: [
    { name: word('repo'), words: word('Read and write your repositories, public and private') },
    { name: word('read:org'), words: word('See which organisations you belong to') },
    { name: word('workflow') },
  ],
  reason: { kind: 'first' },
});

const WIDER = (word: Word) => [
  { name: word('admin:org'), words: word('Manage organisations and teams'), isNew: true },
];

export const signInModel = (word: Word = same): SignInModel => ({
  site: site(word),
  why: 'nobody',
  form: target(word, '/sign-in'),
  issuerHost: word('login.northwind.example'),
  link,
});

export const credentialModel = (word: Word = same): CredentialModel => ({
  site: site(word),
  nowMs: NOW_MS,
  deadlineMs: DEADLINE_MS,
  form: target(word, '/credential/h4ndle'),
  tool: word('Import tickets'),
  providerName: word('Freshdesk'),
  person: word('alice@example.com'),
  helpUrl: 'https://support.example.com/api-keys?lang=en&page=1',
  fields: [
    {
      name: 'subdomain',
      label: word('Account address'),
      kind: 'text',
      maxLength: 200,
      hint: word('The part before .freshdesk.com'),
    },
    {
      name: 'key',
      label: word('API key'),
      kind: 'secret',
      maxLength: 500,
      hint: word('About 20 characters'),
    },
    { name: 'note', label: word('Note'), kind: 'text', maxLength: 100, isOptional: true },
  ],
});

export const connectionsModel = (word: Word = same): ConnectionsModel => ({
  site: site(word),
  nowMs: NOW_MS,
  person: word('alice@example.com'),
  form: target(word, '/connections'),
  switchPerson: target(word, '/sign-in'),
  notice: { kind: 'forgotten', providerName: word('Asana') },
  connections: [
    {
      id: word('con_1'),
      providerName: word('GitHub'),
      account: word('alice-dev'),
      status: 'needs_sign_in',
      scopes: connectModel(word).scopes.map(({ name, words }) =>
        words === undefined ? { name } : { name, words },
      ),
      createdAtMs: NOW_MS - 40 * 86_400_000,
      lastUsedMs: NOW_MS - 3_600_000,
      clients: [word('Claude Desktop'), word('Visual Studio Code')],
      waiting: [
        { title: word('Import issues'), deadlineMs: DEADLINE_MS, linkPath: '/connect/h4ndle' },
        { title: word('Nightly sync'), deadlineMs: DEADLINE_MS + 7_200_000 },
      ],
    },
    {
      id: word('con_2'),
      providerName: word('Notion'),
      status: 'active',
      scopes: [],
      createdAtMs: NOW_MS - 86_400_000,
      clients: [],
      waiting: [],
    },
    {
      id: word('con_3'),
      providerName: word('Xero'),
      account: word('Northwind Traders Ltd'),
      status: 'revoked',
      scopes: [{ name: word('accounting.transactions.read'), words: word('Read invoices and payments') }],
      createdAtMs: NOW_MS - 400 * 86_400_000,
      lastUsedMs: NOW_MS - 100 * 86_400_000,
      clients: [word('Claude Desktop')],
      waiting: [],
    },
  ],
});

export const disconnectModel = (word: Word = same): DisconnectModel => ({
  site: site(word),
  form: target(word, '/connections'),
  connectionId: word('con_1'),
  providerName: word('GitHub'),
  account: word('alice-dev'),
  ending: 'revoke',
  waiting: [word('Import issues'), word('Nightly sync')],
  backPath: '/connections',
});

/** A refusal whose model holds everything, so that a test sees what a variant leaves out. */
export const refusedModel = (variant: RefusedModel['variant'], word: Word = same): RefusedModel => ({
  site: site(word),
  variant,
  providerName: word('GitHub'),
  expectedAccount: word('alice-dev'),
  actualAccount: word('alice-private'),
  missing: [{ name: word('read:org'), words: word('See which organisations you belong to') }],
  retry: target(word, '/connect/h4ndle'),
  switchPerson: target(word, '/sign-in/h4ndle'),
  link,
  ...(variant === 'internal' ? { eventId: word('7F3K-29QD') } : {}),
});

const DONE: readonly { name: string; model: (word: Word) => Omit<DoneModel, 'site' | 'providerName'> }[] = [
  {
    name: 'connected',
    model: (word) => ({ variant: 'connected', account: word('alice-dev'), alsoWoken: 2 }),
  },
  { name: 'late', model: (word) => ({ variant: 'late', account: word('alice-dev') }) },
  { name: 'approved', model: () => ({ variant: 'approved', alsoWoken: 1 }) },
  { name: 'saved', model: () => ({ variant: 'saved' }) },
  { name: 'declined', model: () => ({ variant: 'declined' }) },
];

/** All pages. */
export function samplePages(word: Word = same): readonly SamplePage[] {
  const signIn = signInModel(word);
  const credential = credentialModel(word);
  const connections = connectionsModel(word);
  const { notice: _, ...quiet } = connections;
  return [
    ...REASONS(word).map(({ name, reason }) => ({
      name: `connect-${name}`,
      html: connectPage({
        ...connectModel(word),
        reason,
        ...(reason.kind === 'step-up' ? { scopes: [...WIDER(word), ...connectModel(word).scopes] } : {}),
      }),
    })),
    { name: 'sign-in-nobody', html: signInPage(signIn) },
    { name: 'sign-in-connections', html: signInPage({ ...signIn, why: 'connections' }) },
    {
      name: 'sign-in-stale',
      html: signInPage({ ...signIn, why: 'stale', person: word('alice@example.com') }),
    },
    {
      name: 'leaving',
      html: leavingPage({ site: site(word), url: AUTHORIZATION_URL, providerName: word('GitHub') }),
    },
    ...DONE.map(({ name, model }) => ({
      name: `done-${name}`,
      html: donePage({ site: site(word), providerName: word('GitHub'), ...model(word) }),
    })),
    ...REFUSED_VARIANTS.map((variant) => ({
      name: `refused-${variant}`,
      html: refusedPage(refusedModel(variant, word)),
    })),
    { name: 'credential', html: credentialPage(credential) },
    {
      name: 'credential-with-errors',
      html: credentialPage({
        ...credential,
        fields: credential.fields.map((field) =>
          field.name === 'key' ? { ...field, error: word('Freshdesk does not know this key.') } : field,
        ),
      }),
    },
    { name: 'connections', html: connectionsPage(connections) },
    { name: 'connections-empty', html: connectionsPage({ ...quiet, connections: [] }) },
    { name: 'disconnect-revoke', html: disconnectPage(disconnectModel(word)) },
    {
      name: 'disconnect-forget',
      html: disconnectPage({ ...disconnectModel(word), ending: 'forget', waiting: [] }),
    },
    {
      name: 'home',
      html: homePage({ site: site(word), mcpUrl: word('https://tasks.northwind.example/mcp') }),
    },
  ];
}
