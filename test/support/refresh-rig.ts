/**
 * A Keyturn before a fake provider, with a person's connection already there: for everything that happens to tokens
 * after the sign-in. The token set is a real one of the fake provider, sealed in the real vault; the browser is left
 * out. Nothing listens but the fake provider.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openKeyturn, type Keyturn, type KeyturnOptions } from '../../src/app.ts';
import { readConfig, type ConfigInput } from '../../src/config.ts';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { defineJob, text, type JobDefinition } from '../../src/engine/define.ts';
import type { TaskSnapshot } from '../../src/engine/tasks.ts';
import type { ProfileInput } from '../../src/provider/profile.ts';
import { printTokenSet } from '../../src/provider/token-set.ts';
import { secret } from '../../src/secret.ts';
import type { Connection } from '../../src/store/records.ts';
import type { SqlEngine } from '../../src/store/sql.ts';
import { keysFromEnvironment } from '../../src/vault/key-provider.ts';
import { generateKey } from '../../src/vault/keyring.ts';
import { openVault } from '../../src/vault/vault.ts';
import { openFakeProvider, type FakeProvider } from './fake-provider.ts';
import type { Switches } from './fake-provider-switches.ts';

/** What a rig is made of. */
export interface RefreshRigOptions {
  readonly switches?: Partial<Switches>;
  /** Laid over the profile of the provider `shelf`. */
  readonly profile?: Partial<ProfileInput>;
  readonly timing?: ConfigInput['timing'];
  readonly scopes?: readonly string[];
  /** What we believe of the access token's end: over, unknown, or so many milliseconds from now. */
  readonly expiry?: 'over' | 'unknown' | number;
  readonly wrapStore?: KeyturnOptions['wrapStore'];
  readonly limits?: ConfigInput['limits'];
  /** Called at the start of every run of a job in this process. */
  readonly onRun?: () => void;
}

export interface RefreshRig {
  readonly fake: FakeProvider;
  readonly keyturn: Keyturn;
  readonly lines: readonly string[];
  readonly config: ConfigInput;
  readonly env: Readonly<Record<string, string>>;
  /** Starts a task that reads the provider's API so many times. */
  start(times?: number, scopes?: readonly string[]): Promise<string>;
  read(taskId: string): Promise<TaskSnapshot>;
  /** The task once it has ended or waits for a person; as it is after `ms` otherwise. */
  settled(taskId: string, ms?: number): Promise<TaskSnapshot>;
  cancel(taskId: string): Promise<void>;
  connection(): Promise<Connection>;
  /** What a sign-in does: a new token set of the same person becomes the current one. */
  signIn(scopes?: readonly string[], expiry?: RefreshRigOptions['expiry']): Promise<void>;
  /** One more node on the same ledger. The rig stops it. */
  openNode(options?: { wrapStore?: (engine: SqlEngine) => SqlEngine }): Promise<Keyturn>;
  close(): Promise<void>;
}

export const OWNER = ownerOf({ issuer: 'http://127.0.0.1:9', subject: 'alice' });
export const CALLER = { owner: OWNER, clientId: 'client', scopes: [] };
const DECLARED = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };

/** A job that reads one address of `shelf`, again and again. */
export function readShelf(apiUrl: string, told: () => void = () => undefined): JobDefinition {
  return defineJob({
    name: 'read_shelf',
    description: 'Reads the shelf.',
    run: async (job) => {
      told();
      const { times, scopes } = job.args as { times: number; scopes: string[] };
      const shelf = job.api('shelf', { scopes });
      for (let read = 0; read < times; read += 1) await shelf.json(apiUrl);
      return text(`${times} reads`);
    },
  }) as JobDefinition;
}

/** Configuration of a Keyturn that knows the fake provider as `shelf`. JSON but for the tools, which are left out. */
export function shelfConfig(
  fake: FakeProvider,
  folder: string,
  options: Pick<RefreshRigOptions, 'profile' | 'timing' | 'limits'> = {},
): ConfigInput {
  const { settings } = fake;
  return {
    name: 'Refresh Rig',
    publicUrl: 'http://localhost:9',
    issuer: { url: 'http://127.0.0.1:9', client: { id: 'rig' } },
    ledger: { file: join(folder, 'keyturn.sqlite') },
    providers: {
      shelf: {
        clientId: settings.clientId,
        clientSecret: { env: 'SHELF_SECRET' },
        profile: {
          displayName: 'Shelf',
          issuer: settings.issuer,
          authorizationEndpoint: settings.authorizationEndpoint,
          tokenEndpoint: settings.tokenEndpoint,
          refresh: { rotates: true },
          identity: { url: settings.userinfoEndpoint, subject: 'id' },
          api: { origins: [fake.origin] },
          ...options.profile,
        },
      },
    },
    allowPrivate: [fake.origin],
    log: { level: 'info' },
    limits: { workers: 25, runningPerOwner: 25, ...options.limits },
    timing: { sweepEveryMs: 200, ...options.timing },
  };
}

/** Opens the rig. */
export async function openRefreshRig(options: RefreshRigOptions = {}): Promise<RefreshRig> {
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-refresh-'));
  const fake = await openFakeProvider(options.switches);
  const env = {
    KEYTURN_VAULT_KEYS: generateKey().entry.reveal(),
    SHELF_SECRET: fake.settings.clientSecret.reveal(),
  };
  const job = readShelf(fake.settings.apiUrl, options.onRun);
  const config = shelfConfig(fake, folder, options);
  const lines: string[] = [];
  const nodes: Keyturn[] = [];

  async function openNode(more: { wrapStore?: KeyturnOptions['wrapStore'] } = {}): Promise<Keyturn> {
    const node = await openKeyturn(readConfig({ ...config, tools: [job] }), {
      env,
      logStream: { write: (line: string) => void lines.push(line) },
      ...(more.wrapStore === undefined ? {} : { wrapStore: more.wrapStore }),
    });
    nodes.push(node);
    node.start();
    return node;
  }

  const keyturn = await openNode(options.wrapStore === undefined ? {} : { wrapStore: options.wrapStore });
  const { ledger, engine } = keyturn;
  const keyring = await keysFromEnvironment(env, 'KEYTURN_VAULT_KEYS').load();
  const vault = openVault({ keyring, table: ledger.vaultTable });

  /** Authorization code with PKCE at the fake provider, which approves at once. */
  async function tokensOf(scopes: readonly string[]) {
    const redirect = 'http://localhost:9/callback';
    const verifier = randomBytes(32).toString('base64url');
    const authorize = new URL(fake.settings.authorizationEndpoint);
    authorize.search = new URLSearchParams({
      client_id: fake.settings.clientId,
      response_type: 'code',
      redirect_uri: redirect,
      scope: scopes.join(' '),
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }).toString();
    const sent = await fetch(authorize, { redirect: 'manual' });
    const code = new URL(sent.headers.get('location') ?? '').searchParams.get('code') ?? '';
    const answer = await fetch(fake.settings.tokenEndpoint, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirect,
        code_verifier: verifier,
        client_id: fake.settings.clientId,
        client_secret: fake.settings.clientSecret.reveal(),
      }),
    });
    return (await answer.json()) as { access_token: string; refresh_token?: string };
  }

  async function signIn(
    scopes: readonly string[] = options.scopes ?? [],
    expiry: RefreshRigOptions['expiry'] = options.expiry ?? 'unknown',
  ): Promise<void> {
    const made = await ledger.ensureConnection({
      id: `conn_${randomBytes(6).toString('hex')}`,
      owner: OWNER,
      provider: 'shelf',
      account: 'default',
    });
    const given = await tokensOf(scopes);
    const expiresAtMs = expiry === 'unknown' ? null : Date.now() + (expiry === 'over' ? -1 : expiry);
    const generation = made.generation + 1;
    const recordKey = vault.reserveKey();
    const sealed = await vault.seal(
      { recordKey, owner: OWNER, provider: 'shelf', connectionId: made.id, generation, kind: 'tokens' },
      printTokenSet({
        accessToken: secret(given.access_token),
        ...(given.refresh_token === undefined ? {} : { refreshToken: secret(given.refresh_token) }),
        scopes,
        ...(expiresAtMs === null ? {} : { expiresAtMs }),
        captured: {},
      }),
    );
    await ledger.approveClient(OWNER, made.id, CALLER.clientId);
    await ledger.commitRefresh({
      connectionId: made.id,
      generation: made.generation,
      grant: {
        recordKey,
        ...sealed,
        sealedGeneration: generation,
        kind: 'tokens',
        scopes,
        expiresAtMs,
        refreshable: given.refresh_token !== undefined,
        captured: {},
        subject: 'account-a',
        subjectLabel: null,
      },
    });
  }

  await signIn();
  if (options.expiry === 'over') fake.expireAccessTokens();

  async function read(taskId: string): Promise<TaskSnapshot> {
    const task = await engine.tasks.read(CALLER, taskId);
    if (task === undefined) throw new Error('the task is unknown');
    return task;
  }

  return {
    fake,
    keyturn,
    lines,
    config,
    env,
    read,
    signIn,
    async start(times = 1, scopes = []) {
      const { task } = await engine.tasks.start(CALLER, {
        job,
        args: { times, scopes: [...scopes] },
        declared: DECLARED,
      });
      return task.taskId;
    },
    async settled(taskId, ms = 20_000) {
      const signal = AbortSignal.timeout(ms);
      for (let rev = -1; ;) {
        const task = await engine.tasks.waitForChange(CALLER, taskId, {
          beyondRev: rev,
          timeoutMs: ms,
          signal,
        });
        if (task === undefined) throw new Error('the task is unknown');
        if (task.status !== 'working' || signal.aborted) return task;
        ({ rev } = task);
      }
    },
    async cancel(taskId) {
      await engine.tasks.cancel(CALLER, taskId);
    },
    async connection() {
      const found = await ledger.findConnection(OWNER, 'shelf', 'default');
      if (found === undefined) throw new Error('there is no connection');
      return found;
    },
    openNode,
    async close() {
      for (const node of nodes.toReversed()) await node.stop();
      await fake.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
