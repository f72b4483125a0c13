/**
 * Connections: a person's access at a provider. The vault record is immutable; swinging the pointer to a new one is
 * the commit, in the transaction that wakes whoever waits. Only a new token set changes the generation, and every
 * answer to generation *g* commits while *g* is current, whoever holds the lease by then (R2).
 */
import { coversScopes } from '../elicitation/scopes.ts';
import { record } from './audit.ts';
import type { Connection, RefreshIntent, SealedGrant } from './records.ts';
import { toConnection, type ConnectionRow } from './rows.ts';
import type { Queries, SqlEngine } from './sql.ts';
import { lockConnection, wakeWaiters } from './waits.ts';

/** Superseded records outlive the longest read by far (R22). */
const ORPHAN_AFTER_MS = 5 * 60_000;

/** What came of asking for the right to refresh. */
export type RefreshClaim =
  /** Redeem. `inherited` names the vault key of a holder that vanished: read it before redeeming anything. */
  | {
      readonly kind: 'acquired';
      readonly connection: Connection;
      readonly intent: RefreshIntent;
      readonly inherited: RefreshIntent | null;
    }
  /** Somebody has refreshed already. */
  | { readonly kind: 'newer'; readonly connection: Connection }
  | { readonly kind: 'needs sign-in'; readonly connection: Connection }
  /** Somebody is refreshing. */
  | { readonly kind: 'busy'; readonly untilMs: number; readonly nowMs: number }
  /** The provider asked for patience, or failed lately. */
  | { readonly kind: 'later'; readonly atMs: number; readonly nowMs: number };

/** Marks a vault key for deletion once nobody can be reading it. */
export async function orphan(queries: Queries, recordKey: string): Promise<void> {
  await queries.run(
    `INSERT INTO vault_orphans (record_key, delete_after) VALUES (?, keyturn_now() + ?) ON CONFLICT (record_key) DO NOTHING`,
    recordKey,
    ORPHAN_AFTER_MS,
  );
}

/**
 * Marks the vault key of an answer that is not taken, unless that very answer is the one in force: it may have been
 * committed before, by whoever took the intent over, or by ourselves with the news of it lost.
 */
async function discard(
  queries: Queries,
  connection: Connection | undefined,
  recordKey: string,
): Promise<boolean> {
  const inForce = connection?.record?.recordKey === recordKey;
  if (!inForce) await orphan(queries, recordKey);
  return inForce;
}

/** Swings the pointer of a locked connection to a new token set and wakes its waits. */
export async function swing(
  queries: Queries,
  connection: Connection,
  grant: SealedGrant,
): Promise<{ connection: Connection; resumed: string[] }> {
  if (connection.record !== null) await orphan(queries, connection.record.recordKey);
  if (connection.intent !== null && connection.intent.recordKey !== grant.recordKey) {
    // A refresh of the generation that ends here may still seal its answer under this key.
    await orphan(queries, connection.intent.recordKey);
  }
  await queries.run(`DELETE FROM vault_orphans WHERE record_key = ?`, grant.recordKey);
  const row = await queries.get<ConnectionRow>(
    `UPDATE connections SET status = 'active', status_reason = NULL, generation = generation + 1, record = ?,
       intent = NULL, retry_at = NULL, failures = 0, doubtful_uses = 0, updated_at = keyturn_now()
     WHERE id = ? RETURNING *`,
    JSON.stringify(grant),
    connection.id,
  );
  if (row === undefined) throw new Error('a locked connection vanished');
  const next = toConnection(row);
  await queries.hint({ kind: 'connection', connectionId: connection.id });
  return { connection: next, resumed: await wakeWaiters(queries, next) };
}

/** Whether a new grant may replace the current one: narrower never replaces wider (R7). */
export function mayReplace(current: Connection, grant: SealedGrant): boolean {
  return (
    current.status !== 'active' ||
    current.record === null ||
    coversScopes(grant.scopes, current.record.scopes)
  );
}

export function connectionLedger(engine: SqlEngine) {
  return {
    /** The connection of a person, provider and account; made on first need. */
    ensureConnection: (fresh: {
      id: string;
      owner: string;
      provider: string;
      account: string;
    }): Promise<Connection> =>
      engine.write(async (queries) => {
        await queries.run(
          `INSERT INTO connections (id, owner, provider, account, status, status_reason, generation, failures,
             doubtful_uses, created_at, updated_at)
           VALUES (?, ?, ?, ?, 'needs_sign_in', 'connection_needs_sign_in', 0, 0, 0, keyturn_now(), keyturn_now())
           ON CONFLICT (owner, provider, account) DO NOTHING`,
          fresh.id,
          fresh.owner,
          fresh.provider,
          fresh.account,
        );
        const row = await queries.get<ConnectionRow>(
          `SELECT * FROM connections WHERE owner = ? AND provider = ? AND account = ?`,
          fresh.owner,
          fresh.provider,
          fresh.account,
        );
        if (row === undefined) throw new Error('an ensured connection is missing');
        return toConnection(row);
      }),

    /** A connection by person, provider and account, if there is one. */
    findConnection: (owner: string, provider: string, account: string): Promise<Connection | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<ConnectionRow>(
          `SELECT * FROM connections WHERE owner = ? AND provider = ? AND account = ?`,
          owner,
          provider,
          account,
        );
        return row === undefined ? undefined : toConnection(row);
      }),

    readConnection: (connectionId: string): Promise<Connection | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<ConnectionRow>(`SELECT * FROM connections WHERE id = ?`, connectionId);
        return row === undefined ? undefined : toConnection(row);
      }),

    /** Connections of an owner, with the clients that may use each and how many tasks wait for each. */
    listConnections: (
      owner: string,
    ): Promise<
      {
        connection: Connection;
        clients: string[];
        waiting: { taskId: string; tool: string; deadlineMs: number }[];
      }[]
    > =>
      engine.read(async (queries) => {
        const rows = await queries.all<ConnectionRow>(
          `SELECT * FROM connections WHERE owner = ? AND generation > 0 ORDER BY provider, account`,
          owner,
        );
        return Promise.all(
          rows.map(async (row) => {
            const clients = await queries.all<{ client_id: string }>(
              `SELECT client_id FROM approvals WHERE connection_id = ? ORDER BY client_id`,
              row.id,
            );
            const waiting = await queries.all<{ task_id: string; tool: string; deadline: number }>(
              `SELECT DISTINCT t.id AS task_id, t.tool AS tool, t.deadline AS deadline FROM elicitations e JOIN tasks t ON t.id = e.task_id
               WHERE e.connection_id = ? AND e.finished_at IS NULL AND t.status = 'input_required'
                 AND t.deadline > keyturn_now() LIMIT 50`,
              row.id,
            );
            return {
              connection: toConnection(row),
              clients: clients.map((client) => client.client_id),
              waiting: waiting.map((task) => ({
                taskId: task.task_id,
                tool: task.tool,
                deadlineMs: task.deadline,
              })),
            };
          }),
        );
      }),

    /** Whether a client of the owner may use a connection (R11). */
    clientMayUse: (connectionId: string, clientId: string): Promise<boolean> =>
      engine.read(async (queries) => {
        const row = await queries.get(
          `SELECT 1 AS one FROM approvals WHERE connection_id = ? AND client_id = ?`,
          connectionId,
          clientId,
        );
        return row !== undefined;
      }),

    /** The person agrees that a client uses an existing connection; whoever waits for just that is woken. */
    approveClient: (owner: string, connectionId: string, clientId: string): Promise<string[]> =>
      engine.write(async (queries) => {
        const connection = await lockConnection(queries, connectionId);
        if (connection === undefined || connection.owner !== owner) return [];
        await approve(queries, connection, clientId);
        return wakeWaiters(queries, connection);
      }),

    /**
     * Asks for the right to refresh a generation. The intent, with the vault key that the answer will be sealed
     * under, is durable before anything is redeemed.
     */
    claimRefresh: (claim: {
      connectionId: string;
      generation: number;
      holder: string;
      leaseMs: number;
      recordKey: string;
      /** Waits out no back-off: for the second use of a refresh token whose answer was lost. */
      urgent: boolean;
    }): Promise<RefreshClaim | undefined> =>
      engine.write(async (queries): Promise<RefreshClaim | undefined> => {
        const connection = await lockConnection(queries, claim.connectionId);
        if (connection === undefined) return undefined;
        const nowMs = await queries.nowMs();
        if (connection.status !== 'active' || connection.record === null) {
          return { kind: 'needs sign-in', connection };
        }
        // Nothing is renewed for an owner who is blocked (R15).
        const blocked = await queries.get(
          `SELECT 1 AS one FROM blocked_owners WHERE owner = ?`,
          connection.owner,
        );
        if (blocked !== undefined) return { kind: 'needs sign-in', connection };
        if (connection.generation !== claim.generation) return { kind: 'newer', connection };
        const { intent } = connection;
        if (intent !== null && nowMs < intent.untilMs) {
          return { kind: 'busy', untilMs: intent.untilMs, nowMs };
        }
        if (connection.retryAtMs !== null && nowMs < connection.retryAtMs && !claim.urgent) {
          return { kind: 'later', atMs: connection.retryAtMs, nowMs };
        }
        const next: RefreshIntent = {
          holder: claim.holder,
          untilMs: nowMs + claim.leaseMs,
          recordKey: claim.recordKey,
          generation: claim.generation,
        };
        // Its answer may lie under the key that it reserved, or still come: a swing takes the key off the list again.
        if (intent !== null) await orphan(queries, intent.recordKey);
        await queries.run(
          `UPDATE connections SET intent = ?, doubtful_uses = doubtful_uses + ?, updated_at = keyturn_now() WHERE id = ?`,
          JSON.stringify(next),
          // The holder before us vanished: its use of the refresh token is in doubt.
          intent === null ? 0 : 1,
          connection.id,
        );
        return {
          kind: 'acquired',
          connection: { ...connection, doubtfulUses: connection.doubtfulUses + (intent === null ? 0 : 1) },
          intent: next,
          inherited: intent,
        };
      }),

    /** Commits the answer to a generation while it is current, even if the lease has lapsed meanwhile (R2). */
    commitRefresh: (commit: {
      connectionId: string;
      generation: number;
      grant: SealedGrant;
    }): Promise<{ won: boolean; connection: Connection | undefined }> =>
      engine.write(async (queries) => {
        const connection = await lockConnection(queries, commit.connectionId);
        if (
          connection === undefined ||
          connection.generation !== commit.generation ||
          connection.status === 'revoked'
        ) {
          const committedBefore = await discard(queries, connection, commit.grant.recordKey);
          return { won: committedBefore, connection };
        }
        const { connection: next } = await swing(queries, connection, commit.grant);
        await record(queries, {
          event: 'connection.refreshed',
          owner: connection.owner,
          connectionId: connection.id,
          outcome: 'active',
          facts: { generation: next.generation },
        });
        return { won: true, connection: next };
      }),

    /**
     * Ends a refresh that gave no token set. `later`: keep the grant, back off. `dead`: a person has to sign in
     * again. `doubtful`: the refresh token may have been used although no answer came.
     */
    failRefresh: (failure: {
      connectionId: string;
      generation: number;
      holder: string;
      verdict: 'later' | 'dead' | 'misconfigured';
      reason: string;
      retryInMs: number;
      doubtful: boolean;
    }): Promise<Connection | undefined> =>
      engine.write(async (queries) => {
        const connection = await lockConnection(queries, failure.connectionId);
        if (connection === undefined || connection.generation !== failure.generation) return connection;
        // Somebody took over: the verdict on this generation is theirs to give, their answer may be the live one.
        if (connection.intent !== null && connection.intent.holder !== failure.holder) return connection;
        // What was ended meanwhile stays ended, for the reason that it was ended for.
        if (connection.status !== 'active') return connection;
        const dead = failure.verdict === 'dead';
        if (connection.intent !== null) await orphan(queries, connection.intent.recordKey);
        const row = await queries.get<ConnectionRow>(
          `UPDATE connections SET status = ?, status_reason = ?, intent = NULL, retry_at = keyturn_now() + ?,
             failures = failures + 1, doubtful_uses = doubtful_uses + ?, updated_at = keyturn_now()
           WHERE id = ? RETURNING *`,
          dead ? 'needs_sign_in' : connection.status,
          dead ? failure.reason : connection.statusReason,
          failure.retryInMs,
          failure.doubtful ? 1 : 0,
          connection.id,
        );
        await record(queries, {
          event: 'connection.refresh failed',
          owner: connection.owner,
          connectionId: connection.id,
          outcome: failure.verdict,
          facts: { reason: failure.reason, generation: failure.generation },
        });
        await queries.hint({ kind: 'connection', connectionId: connection.id });
        return row === undefined ? undefined : toConnection(row);
      }),

    /** Says that a generation is dead by what the provider's API answered, where no refresh can help. */
    condemn: (connectionId: string, generation: number, reason: string): Promise<boolean> =>
      engine.write(async (queries) => {
        const changed = await queries.run(
          `UPDATE connections SET status = 'needs_sign_in', status_reason = ?, updated_at = keyturn_now()
           WHERE id = ? AND generation = ? AND status = 'active'`,
          reason,
          connectionId,
          generation,
        );
        if (changed > 0) await queries.hint({ kind: 'connection', connectionId });
        return changed > 0;
      }),

    /** Swings the pointer to the same token set sealed anew under the current key: no new generation (R2). */
    rewrapRecord: (connectionId: string, from: string, to: SealedGrant): Promise<boolean> =>
      engine.write(async (queries) => {
        const connection = await lockConnection(queries, connectionId);
        if (connection === undefined || connection.record?.recordKey !== from) {
          return discard(queries, connection, to.recordKey);
        }
        await orphan(queries, from);
        await queries.run(`DELETE FROM vault_orphans WHERE record_key = ?`, to.recordKey);
        await queries.run(`UPDATE connections SET record = ? WHERE id = ?`, JSON.stringify(to), connectionId);
        await queries.hint({ kind: 'connection', connectionId });
        return true;
      }),

    /** Writes down a vault key that something is about to be sealed under: a crash leaves nothing unknown behind (R22). */
    reserveRecord: async (recordKey: string): Promise<void> => {
      await engine.write((queries) => orphan(queries, recordKey));
    },

    /**
     * Connections that are over their age (R15): nobody used them for `maxIdleMs`, or the person's sign-in is
     * `maxAgeMs` ago.
     */
    agedConnections: (age: { maxIdleMs?: number; maxAgeMs?: number; limit: number }): Promise<Connection[]> =>
      engine.read(async (queries) => {
        const never = Number.MAX_SAFE_INTEGER;
        const rows = await queries.all<ConnectionRow>(
          `SELECT * FROM connections WHERE status <> 'revoked' AND record IS NOT NULL AND (
             COALESCE(last_used_at, updated_at) <= (SELECT keyturn_now()) - ? OR signed_in_at <= (SELECT keyturn_now()) - ?)
           ORDER BY id LIMIT ?`,
          age.maxIdleMs ?? never,
          age.maxAgeMs ?? never,
          age.limit,
        );
        return rows.map(toConnection);
      }),

    /** Notes the use of a connection; at most one write a minute. */
    touchConnection: (connectionId: string): Promise<number> =>
      engine.write((queries) =>
        queries.run(
          `UPDATE connections SET last_used_at = keyturn_now()
           WHERE id = ? AND (last_used_at IS NULL OR last_used_at < keyturn_now() - 60000)`,
          connectionId,
        ),
      ),

    /** Ends a connection at the person's wish or by off-boarding (R15). Waits for it go on until their deadline. */
    revokeConnection: (connectionId: string, by: string): Promise<Connection | undefined> =>
      engine.write(async (queries) => {
        const connection = await lockConnection(queries, connectionId);
        if (connection === undefined) return undefined;
        if (connection.record !== null) await orphan(queries, connection.record.recordKey);
        if (connection.intent !== null) await orphan(queries, connection.intent.recordKey);
        await queries.run(
          `UPDATE connections SET status = 'revoked', status_reason = ?, record = NULL, intent = NULL,
             updated_at = keyturn_now() WHERE id = ?`,
          by,
          connectionId,
        );
        await queries.run(`DELETE FROM approvals WHERE connection_id = ?`, connectionId);
        // A sign-in that began before must not bring the connection back: its person starts a new one.
        const underWay = await queries.all<{ record_key: string }>(
          `UPDATE attempts SET phase = 'refused', outcome = ?, holder = NULL, lease_until = NULL
           WHERE connection_id = ? AND phase IN ('started', 'exchanging', 'exchanged') RETURNING record_key`,
          JSON.stringify({ reason: 'attempt_lost', facts: { by } }),
          connectionId,
        );
        for (const attempt of underWay) await orphan(queries, attempt.record_key);
        await record(queries, {
          event: 'connection.revoked',
          owner: connection.owner,
          connectionId,
          outcome: 'revoked',
          facts: { by },
        });
        await queries.hint({ kind: 'connection', connectionId });
        return connection;
      }),

    /** Connections by owner and provider, for operators (R15). */
    findConnections: (filter: {
      owner?: string;
      provider?: string;
      after: string;
      limit: number;
    }): Promise<Connection[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<ConnectionRow>(
          `SELECT * FROM connections WHERE id > ?
             ${filter.owner === undefined ? '' : 'AND owner = ?'} ${filter.provider === undefined ? '' : 'AND provider = ?'}
           ORDER BY id LIMIT ?`,
          filter.after,
          ...(filter.owner === undefined ? [] : [filter.owner]),
          ...(filter.provider === undefined ? [] : [filter.provider]),
          filter.limit,
        );
        return rows.map(toConnection);
      }),

    /** Whether a connection of anybody uses an account at a provider, other than one that is being ended (R5). */
    accountInUse: (provider: string, subject: string, except?: string): Promise<boolean> =>
      engine.read(async (queries) => {
        const rows = await queries.all<ConnectionRow>(
          `SELECT * FROM connections WHERE provider = ? AND status = 'active'`,
          provider,
        );
        return rows
          .map(toConnection)
          .some((other) => other.id !== except && other.record?.subject === subject);
      }),

    /** Blocks or readmits an owner: a blocked one starts no tasks and is refreshed no more. */
    blockOwner: (owner: string, blocked: boolean): Promise<number> =>
      engine.write(async (queries) => {
        await record(queries, {
          event: blocked ? 'owner.blocked' : 'owner.readmitted',
          owner,
          outcome: blocked ? 'blocked' : 'readmitted',
        });
        return blocked
          ? queries.run(
              `INSERT INTO blocked_owners (owner, blocked_at) VALUES (?, keyturn_now()) ON CONFLICT (owner) DO NOTHING`,
              owner,
            )
          : queries.run(`DELETE FROM blocked_owners WHERE owner = ?`, owner);
      }),

    /** Tasks of an owner that are not over, for ending them. */
    openTasksOf: (owner: string, limit: number): Promise<string[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<{ id: string }>(
          `SELECT id FROM tasks WHERE owner = ? AND is_open = 1 ORDER BY id LIMIT ?`,
          owner,
          limit,
        );
        return rows.map((row) => row.id);
      }),

    /**
     * Forgets an owner: finished tasks with their questions and results, ended connections, agreements and imported
     * records. The audit log stays: it says who did what, and its chain cannot lose a link.
     *
     * @returns how many rows went.
     */
    eraseOwner: (owner: string): Promise<number> =>
      engine.write(async (queries) => {
        let many = 0;
        const sealed = await queries.all<{ record_key: string }>(
          `DELETE FROM attempts WHERE owner = ? RETURNING record_key`,
          owner,
        );
        for (const { record_key: recordKey } of sealed) await orphan(queries, recordKey);
        const collections = await queries.all<{ collection: string }>(
          `SELECT DISTINCT collection FROM records`,
        );
        for (const { collection } of collections) {
          many += await queries.run(
            `DELETE FROM records WHERE collection = ? AND owner = ?`,
            collection,
            owner,
          );
        }
        many += await queries.run(
          `DELETE FROM elicitations WHERE task_id IN (SELECT id FROM tasks WHERE owner = ? AND is_open = 0)`,
          owner,
        );
        many += await queries.run(`DELETE FROM tasks WHERE owner = ? AND is_open = 0`, owner);
        many += await queries.run(`DELETE FROM approvals WHERE owner = ?`, owner);
        many += await queries.run(
          `DELETE FROM connections WHERE owner = ? AND record IS NULL AND intent IS NULL`,
          owner,
        );
        await record(queries, { event: 'owner.erased', owner, outcome: 'erased', facts: { rows: many } });
        return many;
      }),

    isBlocked: (owner: string): Promise<boolean> =>
      engine.read(
        async (queries) =>
          (await queries.get(`SELECT 1 AS one FROM blocked_owners WHERE owner = ?`, owner)) !== undefined,
      ),
  };
}

/** Notes the person's agreement within the caller's transaction. */
export async function approve(queries: Queries, connection: Connection, clientId: string): Promise<void> {
  await queries.run(
    `INSERT INTO approvals (owner, client_id, connection_id, approved_at) VALUES (?, ?, ?, keyturn_now())
     ON CONFLICT (connection_id, client_id) DO NOTHING`,
    connection.owner,
    clientId,
    connection.id,
  );
  await record(queries, {
    event: 'connection.approved',
    owner: connection.owner,
    clientId,
    connectionId: connection.id,
    outcome: 'approved',
  });
}
