/**
 * Access of running jobs to providers, as one person through one client: the right connection, a live token at the
 * moment of the request, and the verdict when there is none. A job gets answers, never a token.
 */
import { randomBytes } from 'node:crypto';
import { isRefusal, Refusal } from '../errors.ts';
import { unionScopes } from '../elicitation/scopes.ts';
import type { Log } from '../log.ts';
import { bindApi, type BoundApi } from '../provider/api.ts';
import type { Egress } from '../provider/egress.ts';
import type { Secret } from '../secret.ts';
import { SecretsInUse } from '../secrets-in-use.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Connection, Task } from '../store/records.ts';
import { satisfies } from '../store/satisfaction.ts';
import { DEFAULT_ACCOUNT } from './accounts.ts';
import type { Changes } from './changes.ts';
import type { JobDefinition } from './define.ts';
import type { Grants } from './grants.ts';
import type { ProviderRegistry } from './providers.ts';
import type { Refresher } from './refresher.ts';
import type { EngineSettings } from './settings.ts';
import type { Want } from './unwind.ts';

/** A job's way to one provider. */
export interface BoundAccess {
  /**
   * @throws Refusal `connection_needs_sign_in`, `insufficient_scope` (hand it to `want`), `provider_unavailable`,
   *   `provider_misconfigured`, `resource_refused`, `egress_forbidden`.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  readonly nextPage: BoundApi['nextPage'];
  /** What a person has to give after such a refusal. */
  want(refusal: Refusal): Want;
}

export type Access = ReturnType<typeof openAccess>;

/** Refreshes that a connection may cause by 401 answers within `BUDGET_MS` (R8). */
const MOST_401_REFRESHES = 5;
const BUDGET_MS = 300_000;
/** The use of a connection is noted this often. */
const TOUCH_EVERY_MS = 60_000;
/** No token is renewed before the last of so many parts of its life. */
const EARLIEST_PART = 4;

export function openAccess(options: {
  ledger: Ledger;
  grants: Grants;
  refresher: Refresher;
  providers: ProviderRegistry;
  egress: Egress;
  changes: Changes;
  settings: EngineSettings;
  log: Log;
  /** Wall clock: token lifetimes count on it. */
  wallMs: () => number;
}) {
  const { ledger, grants, refresher, providers, egress, settings, log, wallMs } = options;
  // Secrets by run: what leaves a task is searched for the tokens that its attempts used (R18). An old run of a task
  // may end while a new one of it goes on.
  const used = new Map<string, SecretsInUse>();
  const refused = new Map<string, { generation: number; atMs: number }[]>();
  const known = new Map<string, Connection>();
  // Uses that this process noted: many calls at once are one write.
  const touched = new Map<string, number>();
  options.changes.onConnection((id) => known.delete(id));
  options.changes.onResync(() => known.clear());

  function note(task: Task, token: Secret): void {
    const set = used.get(runOf(task)) ?? new SecretsInUse(100);
    set.add(token);
    used.set(runOf(task), set);
  }

  /** Counts refused generations, not refusals: any number of jobs may meet the same dead token. */
  function withinBudget(connectionId: string, generation: number): boolean {
    const since = wallMs() - BUDGET_MS;
    const lately = (refused.get(connectionId) ?? []).filter(({ atMs }) => atMs > since);
    if (!lately.some((one) => one.generation === generation)) lately.push({ generation, atMs: wallMs() });
    refused.set(connectionId, lately);
    return lately.length <= MOST_401_REFRESHES;
  }

  async function connectionOf(owner: string, provider: string, account: string): Promise<Connection> {
    const found = await ledger.findConnection(owner, provider, account);
    if (found !== undefined) return found;
    return ledger.ensureConnection({
      id: `conn_${randomBytes(12).toString('base64url')}`,
      owner,
      provider,
      account,
    });
  }

  /** A token that is good for a while, of a connection that this client may use. */
  async function current(task: Task, connectionId: string, scopes: readonly string[], signal: AbortSignal) {
    let connection = known.get(connectionId) ?? (await ledger.readConnection(connectionId));
    if (connection === undefined)
      throw new Refusal('connection_needs_sign_in', { facts: { generation: null } });
    const approved = await ledger.clientMayUse(connectionId, task.clientId);
    requireGood(connection, scopes, approved);
    const expiresAtMs = connection.record?.expiresAtMs ?? null;
    if (expiresAtMs !== null && expiresAtMs - earlyMs(connection, expiresAtMs) <= wallMs()) {
      connection = await ahead(connection, expiresAtMs, signal);
      // The answer may have named fewer scopes than before (D10).
      requireGood(connection, scopes, approved);
    }
    known.set(connectionId, connection);
    const tokens = await grants.openCurrent(connection);
    note(task, tokens.accessToken);
    if (tokens.refreshToken !== undefined) note(task, tokens.refreshToken);
    const lastUsedAtMs = Math.max(connection.lastUsedAtMs ?? 0, touched.get(connectionId) ?? 0);
    if (lastUsedAtMs < wallMs() - TOUCH_EVERY_MS) {
      touched.set(connectionId, wallMs());
      void ledger.touchConnection(connectionId).catch(() => undefined);
    }
    return { tokens, generation: connection.generation };
  }

  /** @throws Refusal `insufficient_scope`, `connection_needs_sign_in` when this client cannot use the connection so. */
  function requireGood(connection: Connection, scopes: readonly string[], approved: boolean): void {
    if (satisfies(connection, { scopes, judgedGeneration: null }, approved)) return;
    const narrow = approved && connection.status === 'active' && connection.record !== null;
    throw new Refusal(narrow ? 'insufficient_scope' : 'connection_needs_sign_in', {
      facts: { generation: narrow ? connection.generation : null, scopes: [...scopes] },
    });
  }

  /** The margin, never more than a part of the lifetime: a short token is not renewed before every call. */
  function earlyMs(connection: Connection, expiresAtMs: number): number {
    const lifetimeMs = Math.max(0, expiresAtMs - connection.updatedAtMs);
    return Math.min(settings.earlyMs, lifetimeMs / EARLIEST_PART);
  }

  /** Renews ahead of expiry. A token that still has time is used on while its provider is in trouble. */
  async function ahead(
    connection: Connection,
    expiresAtMs: number,
    signal: AbortSignal,
  ): Promise<Connection> {
    if (connection.record?.refreshable !== true) return connection;
    try {
      return await unlessLeft(refresher.renew(connection.id, connection.generation), signal);
    } catch (error) {
      if (expiresAtMs > wallMs() && isRefusal(error, 'provider_unavailable')) return connection;
      throw error;
    }
  }

  /**
   * Before a connection is condemned by API answers alone, its identity endpoint is asked (R8): if that works, the
   * resource is refused and the sign-in is good.
   */
  async function condemn(connectionId: string, generation: number): Promise<never> {
    const connection = await ledger.readConnection(connectionId);
    if (connection !== undefined && connection.generation === generation && connection.status === 'active') {
      const provider = providers.get(connection.provider);
      let identity: { subject: string } | undefined;
      try {
        identity = await provider.identity(await grants.openCurrent(connection));
      } catch (error) {
        if (isRefusal(error, 'provider_unavailable')) throw error;
        log.info('identity.refused', { connectionId, generation });
      }
      if (identity !== undefined) {
        throw new Refusal('resource_refused', { facts: { provider: connection.provider } });
      }
      await ledger.condemn(connectionId, generation, 'grant_dead');
    }
    throw new Refusal('connection_needs_sign_in', { facts: { generation } });
  }

  return {
    /** What is missing before the job begins (preflight): the link comes at the start. */
    async preflight(task: Task, definition: JobDefinition): Promise<Want[]> {
      const wants: Want[] = [];
      for (const [provider, requirement] of Object.entries(definition.requires ?? {})) {
        const account = accountOf(task, provider);
        const connection = await connectionOf(task.owner, provider, account);
        const approved = await ledger.clientMayUse(connection.id, task.clientId);
        const scopes = requirement.scopes ?? [];
        if (satisfies(connection, { scopes, judgedGeneration: null }, approved)) continue;
        wants.push({
          kind: providers.get(provider).settings.kind === 'credential' ? 'credential' : 'authorize',
          provider,
          account,
          connectionId: connection.id,
          scopes: unionScopes(scopes, connection.record?.scopes ?? []),
          judgedGeneration: null,
          forceConsent: false,
        });
      }
      return wants;
    },

    bind(call: {
      task: Task;
      provider: string;
      account: string;
      scopes: readonly string[];
      signal: AbortSignal;
    }): BoundAccess {
      const { task } = call;
      const provider = providers.get(call.provider);
      let connection: Connection | undefined;
      async function ensure(): Promise<Connection> {
        connection ??= await connectionOf(task.owner, call.provider, call.account);
        return connection;
      }
      const api = bindApi({
        provider,
        egress,
        signal: call.signal,
        wallMs,
        tokenSource: {
          current: async () => current(task, (await ensure()).id, call.scopes, call.signal),
          async renew(generation) {
            const { id } = await ensure();
            known.delete(id);
            const now = await ledger.readConnection(id);
            const isCurrent = now !== undefined && now.status === 'active' && now.generation === generation;
            // A 401 counts only against the generation that was sent; without a refresh it is the API's word alone.
            if (isCurrent && (now.record?.refreshable !== true || !withinBudget(id, generation))) {
              return condemn(id, generation);
            }
            await unlessLeft(refresher.renew(id, generation), call.signal);
            return current(task, id, call.scopes, call.signal);
          },
        },
      });
      return {
        nextPage: api.nextPage,
        async fetch(url, init) {
          try {
            return await api.fetch(url, init);
          } catch (error) {
            // A second 401, straight after a good refresh: the API alone says so.
            if (!isRefusal(error, 'connection_needs_sign_in') || error.facts['judgedBy'] !== 'api')
              throw error;
            const { id } = await ensure();
            known.delete(id);
            return condemn(id, Number(error.facts['generation']));
          }
        },
        want(refusal): Want {
          const { generation, scopes } = refusal.facts;
          const named = Array.isArray(scopes) ? (scopes as string[]) : [];
          const have = connection?.record?.scopes ?? [];
          return {
            kind: provider.settings.kind === 'credential' ? 'credential' : 'authorize',
            provider: call.provider,
            account: call.account,
            connectionId: connection?.id ?? '',
            scopes: unionScopes(unionScopes(call.scopes, named), have),
            judgedGeneration: typeof generation === 'number' ? generation : null,
            // The API wants more than it names: only a new consent can give it.
            forceConsent:
              refusal.reason === 'insufficient_scope' && named.every((scope) => have.includes(scope)),
          };
        },
      };
    },

    /** A value of a task without the tokens that it used. */
    scrub: <T>(task: Task, value: T): T => used.get(runOf(task))?.scrubJson(value) ?? value,
    scrubText: (task: Task, words: string): string => used.get(runOf(task))?.scrubText(words) ?? words,

    /** The run of a task is over: its secrets need no more watching here. */
    release(task: Task): void {
      used.delete(runOf(task));
    },
  };
}

function runOf(task: Task): string {
  return `${task.id}#${task.term}`;
}

/** What a refresh gives, unless the task is left first: the refresh goes on without it (R1). */
function unlessLeft<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** The account that a call names for a provider, in the argument `account`. */
export function accountOf(task: Task, provider: string): string {
  const args = task.args;
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return DEFAULT_ACCOUNT;
  const { account } = args;
  if (typeof account === 'string' && account !== '') return account.slice(0, 64);
  if (typeof account === 'object' && account !== null && !Array.isArray(account)) {
    const one = account[provider];
    if (typeof one === 'string' && one !== '') return one.slice(0, 64);
  }
  return DEFAULT_ACCOUNT;
}
