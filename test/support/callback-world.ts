/**
 * A Keyturn whose providers are two fake ones that do as told, and visitors whose browsers take one step at a time:
 * a test decides when, where, how often and by whom each step of a sign-in is taken. The sandbox's issuer signs the
 * people in; everything stays on loopback.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownerOf } from '../../src/elicitation/owner.ts';
import type { Caller } from '../../src/engine/caller.ts';
import { defineJob, text, type JobDefinition } from '../../src/engine/define.ts';
import type { TaskSnapshot } from '../../src/engine/tasks.ts';
import type { ProfileInput } from '../../src/provider/profile.ts';
import { readPage, type Page } from '../../src/sandbox/html-page.ts';
import { openPerson, type Person } from '../../src/sandbox/person.ts';
import { isTerminal } from '../../src/task/status.ts';
import { openWorld, type World } from '../../src/world.ts';
import { openFakeProvider, type FakeProvider } from './fake-provider.ts';

/** Names of the providers in the configuration: two with OAuth, one at the first's address that takes a typed key. */
export type ProviderName = 'fake' | 'other' | 'keyed';

export interface CallbackWorldOptions {
  /** Laid over the profiles of both providers. */
  readonly profile?: Partial<ProfileInput>;
  /** Most requests to the pages in a minute; as good as none by default. */
  readonly pagesPerMinute?: number;
}

/** An answer of Keyturn to one request. */
export interface Step {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
  readonly html: string;
  readonly page: Page;
  /** Where a redirect leads, as it was sent; undefined for a page. */
  readonly location: string | undefined;
}

export interface Visitor {
  readonly person: Person;
  /** Follows a link to Keyturn's page behind it, signing in at the issuer if asked to. */
  signIn(link: string, as: string): Promise<void>;
  /** One GET, no redirect followed. `fromElsewhere`: the navigation comes from another site. */
  get(url: string, options?: { fromElsewhere?: boolean; method?: 'GET' | 'HEAD' }): Promise<Step>;
  /** One form post to Keyturn, no redirect followed. */
  post(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Step>;
  /** One post of any body. */
  postBody(path: string, body: string, headers?: Readonly<Record<string, string>>): Promise<Step>;
  /** Presses *Continue* behind a link and stops there: the address of the provider that the page moves on to. */
  depart(link: string, fields?: Readonly<Record<string, string>>): Promise<string>;
}

export interface CallbackWorld {
  readonly world: World;
  readonly fake: FakeProvider;
  readonly other: FakeProvider;
  /** Everything that was logged. */
  readonly logLines: readonly string[];
  caller(as: string, clientId?: string): Caller;
  /** Starts a task that needs an API, and waits until it has stopped for a sign-in. */
  stopped(
    as: string,
    options?: { job?: string; clientId?: string },
  ): Promise<{ taskId: string; link: string; key: string }>;
  read(as: string, taskId: string): Promise<TaskSnapshot>;
  /** Waits until a task has a status, has ended, or 10 seconds are over. */
  until(as: string, taskId: string, status: string): Promise<TaskSnapshot>;
  /** Ends every connection of a person. */
  disconnect(as: string): Promise<void>;
  visitor(): Visitor;
  /** What the provider's page does: the address that it sends the browser back to. */
  approve(authorizationUrl: string): Promise<string>;
  close(): Promise<void>;
}

/** Scopes that the jobs need. */
export const SCOPES = ['items:read', 'items:list'] as const;

/** How long `fetch_items_soon` waits for a person, in milliseconds. */
export const SOON_MS = 1_500;

function fetchItems(name: string, provider: ProviderName, url: string, waitMs?: number): JobDefinition {
  return defineJob({
    name,
    title: `Fetch items (${name})`,
    description: 'Reads one page of items.',
    requires: { [provider]: { scopes: SCOPES } },
    ...(waitMs === undefined ? {} : { waitMs }),
    run: async (job) => {
      const answer = await job.api(provider, { scopes: SCOPES }).json(url);
      return text('fetched', { structuredContent: { answer } });
    },
  });
}

function profileOf(provider: FakeProvider, more: Partial<ProfileInput>): ProfileInput {
  const { settings } = provider;
  return {
    displayName: 'Fakebox',
    issuer: settings.issuer,
    authorizationEndpoint: settings.authorizationEndpoint,
    tokenEndpoint: settings.tokenEndpoint,
    clientAuthentication: 'client_secret_post',
    responseIssuer: 'required',
    consentParameters: { prompt: 'consent' },
    scopeWords: { 'items:read': 'Read your items' },
    revocation: { endpoint: settings.revocationEndpoint, ends: 'token' },
    identity: { url: settings.userinfoEndpoint, subject: 'id', label: 'id' },
    api: { origins: [provider.origin] },
    ...more,
  };
}

/** A provider without OAuth: whether a key is good is what the fake provider's `userinfo` says. */
function keyedProfile(provider: FakeProvider): ProfileInput {
  return {
    displayName: 'Keybox',
    kind: 'credential',
    identity: { url: provider.settings.userinfoEndpoint, subject: 'id' },
    api: { origins: [provider.origin] },
    credential: {
      fields: [
        { name: 'key', label: 'API key', kind: 'secret', maxLength: 100 },
        { name: 'site', label: 'Site', kind: 'text', isOptional: true, maxLength: 20 },
      ],
    },
  };
}

async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Opens the world. */
export async function openCallbackWorld(options: CallbackWorldOptions = {}): Promise<CallbackWorld> {
  const fake = await openFakeProvider({}, { host: '127.0.0.4' });
  const other = await openFakeProvider({}, { host: '127.0.0.5' });
  const issuerPort = await freePort('127.0.0.2');
  const logLines: string[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-callback-'));
  const registered = (name: ProviderName, provider: FakeProvider) => {
    const file = join(folder, `${name}.secret`);
    writeFileSync(file, provider.settings.clientSecret.reveal(), { mode: 0o600 });
    const { clientId } = provider.settings;
    return { clientId, clientSecret: { file }, profile: profileOf(provider, options.profile ?? {}) };
  };
  const jobs = [
    fetchItems('fetch_items', 'fake', fake.settings.apiUrl),
    fetchItems('fetch_items_soon', 'fake', fake.settings.apiUrl, SOON_MS),
    fetchItems('fetch_others', 'other', other.settings.apiUrl),
    fetchItems('fetch_keyed', 'keyed', fake.settings.apiUrl),
  ];
  const world = await openWorld({
    ports: { issuer: issuerPort },
    logStream: { write: (line) => void logLines.push(line) },
    config: {
      providers: {
        fake: registered('fake', fake),
        other: registered('other', other),
        keyed: { profile: keyedProfile(fake) },
      },
      tools: jobs,
      allowPrivate: [`http://127.0.0.2:${issuerPort}`, fake.origin, other.origin],
      limits: { pagesPerMinute: options.pagesPerMinute ?? 10_000 },
      log: { level: 'debug' },
    },
  });

  const caller = (as: string, clientId = 'test-client'): Caller => {
    const subject = world.sandbox.issuer.accounts.find((one) => one.id.includes(as))?.id ?? as;
    return { owner: ownerOf({ issuer: world.sandbox.issuer.issuer, subject }), clientId, scopes: [] };
  };

  async function until(as: string, taskId: string, status: string): Promise<TaskSnapshot> {
    const signal = AbortSignal.timeout(10_000);
    for (let rev = -1; ;) {
      const task = await world.keyturn.engine.tasks.waitForChange(caller(as), taskId, {
        beyondRev: rev,
        timeoutMs: 10_000,
        signal,
      });
      if (task === undefined) throw new Error('no such task');
      if (task.status === status || isTerminal(task.status) || signal.aborted) return task;
      rev = task.rev;
    }
  }

  return {
    world,
    fake,
    other,
    logLines,
    caller,
    until,
    async stopped(as, { job = 'fetch_items', clientId } = {}) {
      const definition = jobs.find(({ name }) => name === job);
      if (definition === undefined) throw new Error(`no job ${job}`);
      const { task } = await world.keyturn.engine.tasks.start(caller(as, clientId), {
        job: definition,
        args: {},
        declared: { tasks: true, modes: { form: true, url: true }, clientName: 'test' },
      });
      const waiting = await until(as, task.taskId, 'input_required');
      const [input] = waiting.inputs;
      if (input?.url == null) throw new Error(`the task is ${waiting.status} without a link`);
      return { taskId: task.taskId, link: input.url, key: input.key };
    },
    async read(as, taskId) {
      const task = await world.keyturn.engine.tasks.read(caller(as), taskId);
      if (task === undefined) throw new Error('no such task');
      return task;
    },
    async disconnect(as) {
      const { ledger, engine } = world.keyturn;
      const { owner } = caller(as);
      for (const { connection } of await ledger.listConnections(owner)) {
        await engine.offBoarding.disconnect(owner, connection.id);
      }
    },
    visitor: () => openVisitor(world),
    async approve(authorizationUrl) {
      const answer = await fetch(authorizationUrl, { redirect: 'manual' });
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`the provider answered ${answer.status}`);
      return location;
    },
    async close() {
      await world.close();
      await fake.close();
      await other.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function openVisitor(world: World): Visitor {
  const person = openPerson();

  async function send(
    method: 'GET' | 'HEAD' | 'POST',
    at: string,
    how: { body?: string; fromElsewhere?: boolean; headers?: Readonly<Record<string, string>> },
  ): Promise<Step> {
    const url = new URL(at, world.publicUrl);
    const cookie = person.cookies.headerFor({
      url,
      isSameSite: how.fromElsewhere !== true,
      isSafeNavigation: method !== 'POST',
    });
    const answer = await world.keyturn.app.inject({
      method,
      // As it is: nothing here may tidy up what a test wants to send.
      url: at.startsWith(world.publicUrl) ? at.slice(world.publicUrl.length) : at,
      headers: {
        host: url.host,
        'sec-fetch-site': how.fromElsewhere === true ? 'cross-site' : 'same-origin',
        ...(cookie === undefined ? {} : { cookie }),
        ...(method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
        ...how.headers,
      },
      ...(how.body === undefined ? {} : { payload: how.body }),
    });
    const lines = answer.headers['set-cookie'] ?? [];
    person.cookies.store(url, Array.isArray(lines) ? lines : [String(lines)]);
    const { location } = answer.headers;
    return {
      status: answer.statusCode,
      headers: answer.headers,
      html: answer.body,
      page: readPage(url.href, answer.statusCode, answer.body),
      location: typeof location === 'string' ? location : undefined,
    };
  }

  const visitor: Visitor = {
    person,
    async signIn(link, as) {
      let page = await person.open(link);
      const buttons = page.forms.flatMap((form) => form.buttons);
      if (buttons.some(({ value }) => value === 'sign-in')) page = await person.press({ value: 'sign-in' });
      if (page.forms.some((form) => form.buttons.some(({ name }) => name === 'person'))) {
        await person.press({ name: 'person', value: as });
      }
    },
    get: (url, options = {}) =>
      send(options.method ?? 'GET', url, { fromElsewhere: options.fromElsewhere ?? false }),
    post: (path, fields, headers = {}) =>
      send('POST', path, { body: new URLSearchParams(fields).toString(), headers }),
    postBody: (path, body, headers = {}) => send('POST', path, { body, headers }),
    async depart(link, fields = {}) {
      const shown = await visitor.get(link);
      const form = shown.page.forms.find(({ buttons }) => buttons.some(({ value }) => value === 'continue'));
      if (form === undefined) throw new Error(`no "continue" on the page "${shown.page.title}"`);
      const left = await visitor.post(form.action, {
        ...Object.fromEntries(form.fields),
        action: 'continue',
        ...fields,
      });
      if (left.page.movesTo === undefined) throw new Error(`the page "${left.page.title}" does not move on`);
      return left.page.movesTo;
    },
  };
  return visitor;
}
