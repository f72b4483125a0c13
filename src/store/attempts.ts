/**
 * Attempts: one press of *Continue* each (R6). `started → exchanging → exchanged → granted | refused | lost`. An
 * attempt is taken once; a code is never sent twice; any node finishes an `exchanged` one.
 */
import type { TaskErrorReason } from '../errors.ts';
import { missingScopes } from '../elicitation/scopes.ts';
import { record } from './audit.ts';
import { approve, mayReplace, orphan, swing } from './connections.ts';
import type { Attempt, Elicitation, Json, Link, SealedGrant, Task } from './records.ts';
import {
  TASK_COLUMNS,
  toAttempt,
  toElicitation,
  toTask,
  type AttemptRow,
  type ElicitationRow,
  type TaskRow,
} from './rows.ts';
import { satisfies } from './satisfaction.ts';
import type { Queries, SqlEngine } from './sql.ts';
import { endTask, WAITING } from './tasks.ts';
import { effectiveTask } from './effective.ts';
import { insertElicitation, isApproved, lockConnection, refusalOutcome, wakeWaiters } from './waits.ts';

/** A question found by its link, with its task as it is now (undefined: forgotten). */
export interface Asked {
  readonly elicitation: Elicitation;
  readonly task: Task | undefined;
  readonly nowMs: number;
}

/** What came of taking an attempt. */
export type Taking =
  | { readonly kind: 'taken'; readonly attempt: Attempt; readonly generation: number }
  /** It was taken before: the recorded outcome is what the page shows. */
  | { readonly kind: 'used'; readonly attempt: Attempt }
  /** Too late, or the task has ended: the code is never sent anywhere (D2). */
  | { readonly kind: 'over'; readonly attempt: Attempt; readonly reason: 'deadline_passed' | 'link_over' }
  /** The connection already gives what was asked for: done without redeeming (R7). */
  | { readonly kind: 'satisfied'; readonly attempt: Attempt }
  /** Another exchange of this connection is under way (R7). */
  | { readonly kind: 'busy'; readonly untilMs: number; readonly nowMs: number };

/** What came of committing a grant. */
export interface Granted {
  readonly kind: 'granted' | 'short' | 'used';
  /** Whether the token set is the one in force now: a late or narrower one is not taken. */
  readonly taken: boolean;
  /** Tasks that went back to work. */
  readonly resumed: readonly string[];
  /** Whether the attempt's own task was woken, or was over already (D2). */
  readonly ownTaskOver: boolean;
  /** Scopes that the person did not give. */
  readonly missing: readonly string[];
  /** The question that asks for what is missing once more, if it may be asked (D10). */
  readonly askedAgain: Elicitation | null;
}

/** Attempts that one link may start. */
export const MOST_ATTEMPTS = 20;

async function readAttemptRow(queries: Queries, stateHash: string, lock: string) {
  const row = await queries.get<AttemptRow>(`SELECT * FROM attempts WHERE state_hash = ?${lock}`, stateHash);
  return row === undefined ? undefined : toAttempt(row);
}

async function setPhase(
  queries: Queries,
  stateHash: string,
  phase: Attempt['phase'],
  outcome: { reason: string; facts: { [name: string]: Json } } | null,
): Promise<void> {
  await queries.run(
    `UPDATE attempts SET phase = ?, outcome = ?, holder = NULL, lease_until = NULL WHERE state_hash = ?`,
    phase,
    outcome === null ? null : JSON.stringify(outcome),
    stateHash,
  );
}

async function readElicitation(queries: Queries, id: string): Promise<Elicitation> {
  const row = await queries.get<ElicitationRow>(`SELECT * FROM elicitations WHERE id = ?`, id);
  if (row === undefined) throw new Error('an attempt without its question');
  return toElicitation(row);
}

async function readTaskRow(queries: Queries, id: string, lock = ''): Promise<Task | undefined> {
  const row = await queries.get<TaskRow>(`SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?${lock}`, id);
  return row === undefined ? undefined : toTask(row);
}

async function asked(queries: Queries, row: ElicitationRow): Promise<Asked> {
  const elicitation = toElicitation(row);
  const task = await readTaskRow(queries, elicitation.taskId);
  const nowMs = await queries.nowMs();
  return { elicitation, task: task && effectiveTask(task, nowMs), nowMs };
}

export function attemptLedger(engine: SqlEngine) {
  return {
    /** The question behind a link. */
    findLink: (handleHash: string): Promise<Asked | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<ElicitationRow>(
          `SELECT * FROM elicitations WHERE handle_hash = ?`,
          handleHash,
        );
        return row === undefined ? undefined : asked(queries, row);
      }),

    /** The question of an attempt. */
    findQuestion: (elicitationId: string): Promise<Asked | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<ElicitationRow>(
          `SELECT * FROM elicitations WHERE id = ?`,
          elicitationId,
        );
        return row === undefined ? undefined : asked(queries, row);
      }),

    /** Starts an attempt while its question is open and its deadline ahead. */
    beginAttempt: (
      fresh: Omit<
        Attempt,
        'phase' | 'holder' | 'leaseUntilMs' | 'startedAtMs' | 'deadlineMs' | 'sealed' | 'outcome'
      >,
    ): Promise<'started' | 'too many' | 'over'> =>
      engine.write(async (queries) => {
        const counted = await queries.get<{ many: number }>(
          `SELECT count(*) AS many FROM attempts WHERE elicitation_id = ?`,
          fresh.elicitationId,
        );
        if (Number(counted?.many ?? 0) >= MOST_ATTEMPTS) return 'too many';
        const started = await queries.run(
          `INSERT INTO attempts (state_hash, id, elicitation_id, task_id, connection_id, owner, provider,
             sealed_verifier, nonce, redirect_uri, issuer, binding_hash, session_hash, scopes, tenant, any_account,
             record_key, phase, started_at, deadline)
           SELECT ?, ?, e.id, e.task_id, e.connection_id, e.owner, e.provider, ?, ?, ?, ?, ?, ?, ?, ?, ${fresh.anyAccount ? 1 : 0},
             ?, 'started', keyturn_now(), e.deadline
           FROM elicitations e JOIN tasks t ON t.id = e.task_id
           WHERE e.id = ? AND e.connection_id IS NOT NULL AND e.finished_at IS NULL AND e.deadline > keyturn_now() AND t.status = 'input_required'
             AND (t.host_until IS NULL OR t.host_until > keyturn_now())`,
          fresh.stateHash,
          fresh.id,
          fresh.sealedVerifier,
          fresh.nonce,
          fresh.redirectUri,
          fresh.issuer,
          fresh.bindingHash,
          fresh.sessionHash,
          JSON.stringify(fresh.scopes),
          JSON.stringify(fresh.tenant),
          fresh.recordKey,
          fresh.elicitationId,
        );
        if (started === 0) return 'over';
        await record(queries, {
          event: 'attempt.started',
          owner: fresh.owner,
          taskId: fresh.taskId,
          connectionId: fresh.connectionId,
          outcome: 'started',
        });
        return 'started';
      }),

    findAttempt: (stateHash: string): Promise<Attempt | undefined> =>
      engine.read((queries) => readAttemptRow(queries, stateHash, '')),

    /** An attempt by the name that pages know it by. */
    findAttemptById: (id: string): Promise<Attempt | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<AttemptRow>(`SELECT * FROM attempts WHERE id = ?`, id);
        return row === undefined ? undefined : toAttempt(row);
      }),

    /** Takes an attempt exactly once, after the last checks that only the ledger can make. */
    takeAttempt: (take: {
      stateHash: string;
      holder: string;
      leaseMs: number;
    }): Promise<Taking | undefined> =>
      engine.write(async (queries): Promise<Taking | undefined> => {
        const seen = await readAttemptRow(queries, take.stateHash, '');
        if (seen === undefined) return undefined;
        const connection = await lockConnection(queries, seen.connectionId);
        const attempt = await readAttemptRow(queries, take.stateHash, queries.lock);
        if (attempt === undefined || connection === undefined) return undefined;
        if (attempt.phase !== 'started') return { kind: 'used', attempt };
        const elicitation = await readElicitation(queries, attempt.elicitationId);
        const approved = await isApproved(queries, connection.id, elicitation.clientId);
        const task = await readTaskRow(queries, attempt.taskId, queries.lock);
        const nowMs = await queries.nowMs();
        const current = task === undefined ? undefined : effectiveTask(task, nowMs);
        const refuse = async (reason: 'deadline_passed' | 'link_over'): Promise<Taking> => {
          await setPhase(queries, take.stateHash, 'refused', {
            reason,
            facts: { status: current?.status ?? 'unknown' },
          });
          await record(queries, {
            event: 'attempt.refused',
            owner: attempt.owner,
            taskId: attempt.taskId,
            connectionId: attempt.connectionId,
            outcome: reason,
          });
          return { kind: 'over', attempt, reason };
        };
        if (nowMs >= attempt.deadlineMs) return refuse('deadline_passed');
        // A cancelled task is cancelled, whatever the connection has become since.
        if (current?.status === 'cancelled') return refuse('link_over');
        const isWaiting = current?.status === 'input_required';
        const done =
          elicitation.outcome === 'granted' || (isWaiting && satisfies(connection, elicitation, approved));
        if (done && current !== undefined) {
          await wakeWaiters(queries, connection);
          await setPhase(queries, take.stateHash, 'granted', {
            reason: 'granted',
            facts: { redeemed: false },
          });
          return { kind: 'satisfied', attempt };
        }
        if (!isWaiting) return refuse('link_over');
        const other = await queries.get<{ lease_until: number }>(
          `SELECT lease_until FROM attempts WHERE connection_id = ? AND phase IN ('exchanging', 'exchanged')
             AND lease_until > keyturn_now() AND state_hash <> ? LIMIT 1`,
          connection.id,
          take.stateHash,
        );
        if (other !== undefined) return { kind: 'busy', untilMs: other.lease_until, nowMs };
        await queries.run(
          `UPDATE attempts SET phase = 'exchanging', holder = ?, lease_until = keyturn_now() + ? WHERE state_hash = ?`,
          take.holder,
          take.leaseMs,
          take.stateHash,
        );
        return { kind: 'taken', attempt, generation: connection.generation };
      }),

    /** Notes that the answer lies sealed under the reserved key: from here any node can finish (R6). */
    markExchanged: (stateHash: string, holder: string, sealed: SealedGrant): Promise<boolean> =>
      engine.write(
        async (queries) =>
          (await queries.run(
            `UPDATE attempts SET phase = 'exchanged', sealed = ?
             WHERE state_hash = ? AND ((phase = 'exchanging' AND holder = ?) OR phase = 'lost')`,
            JSON.stringify(sealed),
            stateHash,
            holder,
          )) > 0,
      ),

    /** Ends an attempt without a grant. The link stays good, unless the refusal ends the task as well (D6, D8). */
    refuseAttempt: (refusal: {
      stateHash: string;
      reason: string;
      facts?: { [name: string]: Json };
      phase?: 'refused' | 'lost';
      /** The task ends with it: move `deny`. */
      ends?: { reason: TaskErrorReason; statusMessage: string };
    }): Promise<Attempt | undefined> =>
      engine.write(async (queries) => {
        const attempt = await readAttemptRow(queries, refusal.stateHash, queries.lock);
        if (attempt === undefined || !['started', 'exchanging', 'exchanged'].includes(attempt.phase)) {
          return undefined;
        }
        const outcome = { reason: refusal.reason, facts: refusal.facts ?? {} };
        await setPhase(queries, refusal.stateHash, refusal.phase ?? 'refused', outcome);
        await orphan(queries, attempt.recordKey);
        await record(queries, {
          event: 'attempt.refused',
          owner: attempt.owner,
          taskId: attempt.taskId,
          connectionId: attempt.connectionId,
          outcome: refusal.reason,
          facts: refusal.facts ?? {},
        });
        if (refusal.ends !== undefined) {
          const task = await readTaskRow(queries, attempt.taskId, queries.lock);
          if (task !== undefined) {
            await endTask(queries, {
              task,
              status: 'failed',
              move: 'deny',
              outcome: refusalOutcome(refusal.ends.reason, { provider: attempt.provider }),
              statusMessage: refusal.ends.statusMessage,
              where: WAITING,
              whereValues: [task.id],
            });
          }
        }
        return attempt;
      }),

    /**
     * Commits a sealed token set: pointer, connection, agreement and every wait in time, in one transaction (R3).
     *
     * @param commit.again what a further question is made of, if scopes are missing and none was forced before.
     */
    commitGrant: (commit: {
      stateHash: string;
      grant: SealedGrant;
      again: { id: string; link: Link; message: string } | null;
    }): Promise<Granted> =>
      engine.write(async (queries): Promise<Granted> => {
        const used: Granted = {
          kind: 'used',
          taken: false,
          resumed: [],
          ownTaskOver: false,
          missing: [],
          askedAgain: null,
        };
        const seen = await readAttemptRow(queries, commit.stateHash, '');
        if (seen === undefined) return used;
        const connection = await lockConnection(queries, seen.connectionId);
        const attempt = await readAttemptRow(queries, commit.stateHash, queries.lock);
        if (connection === undefined || attempt?.phase !== 'exchanged') return used;
        const elicitation = await readElicitation(queries, attempt.elicitationId);
        let current = connection;
        let resumed: string[] = [];
        let taken = false;
        await approve(queries, connection, elicitation.clientId);
        // Granted meanwhile by a newer sign-in: that one is current, this one comes late (R7).
        const isLate = elicitation.outcome === 'granted' && connection.status === 'active';
        // A generation that this very wait judged dead protects nothing: what it asked for replaces it.
        const judgedDead =
          elicitation.judgedGeneration === connection.generation &&
          missingScopes(elicitation.scopes, commit.grant.scopes).length === 0;
        if (!isLate && (judgedDead || mayReplace(connection, commit.grant))) {
          ({ connection: current, resumed } = await swing(queries, connection, commit.grant));
          await queries.run(
            `UPDATE connections SET signed_in_at = keyturn_now() WHERE id = ?`,
            connection.id,
          );
          taken = true;
        } else {
          await orphan(queries, commit.grant.recordKey);
          resumed = await wakeWaiters(queries, connection);
        }
        const missing = missingScopes(elicitation.scopes, commit.grant.scopes);
        const task = await readTaskRow(queries, attempt.taskId, queries.lock);
        const nowMs = await queries.nowMs();
        const over = task === undefined || effectiveTask(task, nowMs)?.status !== 'input_required';
        const ownTaskOver = over && !resumed.includes(attempt.taskId) && task?.status !== 'working';
        let askedAgain: Elicitation | null = null;
        if (missing.length > 0 && !over && task !== undefined && task.deadlineMs !== null) {
          // Every open link of this question is answered by it, except one that forces consent already.
          await queries.run(
            `UPDATE elicitations SET finished_at = keyturn_now(), outcome = 'short', reask_at = NULL
             WHERE task_id = ? AND name = ? AND finished_at IS NULL AND (id = ? OR force_consent = 0)`,
            task.id,
            elicitation.name,
            elicitation.id,
          );
          // Once, however many tabs and links come back short (D10).
          const forced = await queries.get<ElicitationRow>(
            `SELECT * FROM elicitations WHERE task_id = ? AND name = ? AND force_consent = 1
               AND finished_at IS NULL LIMIT 1`,
            task.id,
            elicitation.name,
          );
          if (!elicitation.forceConsent && forced !== undefined) {
            askedAgain = toElicitation(forced);
          } else if (!elicitation.forceConsent && commit.again !== null) {
            askedAgain = await insertElicitation(
              queries,
              task,
              { ...elicitation, ...commit.again, judgedGeneration: null, forceConsent: true },
              { deadlineMs: task.deadlineMs, reasks: elicitation.reasks },
            );
            await queries.run(
              `UPDATE tasks SET rev = rev + 1, updated_at = keyturn_now() WHERE id = ?`,
              task.id,
            );
            await queries.hint({ kind: 'task', taskId: task.id });
          } else {
            await endTask(queries, {
              task,
              status: 'failed',
              move: 'deny',
              outcome: refusalOutcome('insufficient_scope', { provider: attempt.provider, missing }),
              statusMessage: `The sign-in did not give: ${missing.join(', ')}. Start the task again and allow it.`,
              where: WAITING,
              whereValues: [task.id],
            });
          }
        }
        const kind = missing.length > 0 ? 'short' : 'granted';
        await setPhase(queries, commit.stateHash, kind === 'short' ? 'refused' : 'granted', {
          reason: kind === 'short' ? 'insufficient_scope' : 'granted',
          facts: {
            resumed: resumed.length,
            ownTaskOver,
            missing,
            ...(askedAgain === null ? {} : { again: askedAgain.id }),
          },
        });
        await record(queries, {
          event: 'connection.granted',
          owner: attempt.owner,
          clientId: elicitation.clientId,
          taskId: attempt.taskId,
          connectionId: connection.id,
          outcome: kind,
          facts: { generation: current.generation, scopes: [...commit.grant.scopes], resumed, missing },
        });
        return { kind, taken, resumed, ownTaskOver, missing, askedAgain };
      }),

    /** Attempts whose holder vanished: in `exchanging` (lost, or sealed without a note) or `exchanged`. */
    staleAttempts: (limit: number): Promise<Attempt[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<AttemptRow>(
          `SELECT * FROM attempts WHERE phase IN ('exchanging', 'exchanged') AND lease_until <= (SELECT keyturn_now())
           ORDER BY lease_until LIMIT ?`,
          limit,
        );
        return rows.map(toAttempt);
      }),

    /** Puts off an attempt that cannot be finished now: other sign-ins of its connection do not wait for it. */
    deferAttempt: (stateHash: string, holder: string, forMs: number): Promise<boolean> =>
      engine.write(
        async (queries) =>
          (await queries.run(
            `UPDATE attempts SET lease_until = keyturn_now() + ? WHERE state_hash = ? AND phase = 'exchanged' AND holder = ?`,
            forMs,
            stateHash,
            holder,
          )) > 0,
      ),

    /** Takes over an attempt whose holder vanished. */
    adoptAttempt: (stateHash: string, holder: string, leaseMs: number): Promise<boolean> =>
      engine.write(
        async (queries) =>
          (await queries.run(
            `UPDATE attempts SET holder = ?, lease_until = keyturn_now() + ?
             WHERE state_hash = ? AND phase IN ('exchanging', 'exchanged') AND lease_until <= keyturn_now()`,
            holder,
            leaseMs,
            stateHash,
          )) > 0,
      ),
  };
}
