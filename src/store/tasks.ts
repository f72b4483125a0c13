/**
 * Tasks in the ledger: created, claimed, moved and read. Every change of state is one conditional write that names
 * its move of `task/transitions.ts`; a worker's write carries its term and touches no row once the lease is over.
 */
import { READ_BACK_MARGIN_MS } from '../task/lifetime.ts';
import { record } from './audit.ts';
import { effectiveTask } from './effective.ts';
import type { Elicitation, Json, NewTask, Outcome, Progress, Task } from './records.ts';
import { TASK_COLUMNS, toElicitation, toTask, type ElicitationRow, type TaskRow } from './rows.ts';
import type { Queries, SqlEngine } from './sql.ts';

/** A task as everybody sees it at one instant, with what is being asked. */
export interface TaskView {
  readonly task: Task;
  /** Asked and not finished, by time of asking and key. Empty unless `input_required`. */
  readonly asked: readonly Elicitation[];
  /** The ledger's clock at the reading. */
  readonly nowMs: number;
}

/** What holds a worker's writes to its claim. */
export interface Claim {
  readonly taskId: string;
  readonly term: number;
}

/** Limits that a creation is held against. */
export interface CreationLimits {
  /**
   * Tasks of one owner that have not ended. On PostgreSQL, creations at the same instant do not see each other: they
   * may pass the limit by as many as there are connections.
   */
  readonly openPerOwner: number;
  /** Whether more work is due than may be: then nothing new is created, and what was created is still found. */
  readonly queueFull?: boolean;
}

/** What came of a creation. */
export type Creation =
  | { readonly kind: 'created'; readonly task: Task }
  /** The same call was made before: its task. */
  | { readonly kind: 'existing'; readonly task: Task }
  /** The key was used with other arguments. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'limit'; readonly open: number }
  /** More work is due than may be. */
  | { readonly kind: 'queue full' }
  | { readonly kind: 'blocked' };

/** What a worker finds out when it writes. */
export type Won = { readonly won: true; readonly task: Task } | { readonly won: false };

const LOST: Won = { won: false };

/** Keeps `ttl_ms` above the age of the task at an instant plus the read-back margin, never lowering it (D5). */
function ttlCovering(at: string): string {
  const floor = `${at} - created_at + ${READ_BACK_MARGIN_MS}`;
  return `CASE WHEN ttl_ms < ${floor} THEN ${floor} ELSE ttl_ms END`;
}

const TTL_UPKEEP = `ttl_ms = ${ttlCovering('keyturn_now()')}`;

/** The columns of an end: nothing waits, runs or is due any more. */
export const ENDED = `due_at = NULL, holder = NULL, lease_until = NULL, deadline = NULL, host_until = NULL, is_open = 0,
  term = term + 1, rev = rev + 1`;

/** A task whose host has gone has ended, swept or not (D5): nothing is written to it any more. */
const HOSTED = `(host_until IS NULL OR host_until > keyturn_now())`;

/** A worker's write applies only while its term is current and its lease is live: at the end it is over. */
export const HELD = `id = ? AND term = ? AND status = 'working' AND lease_until > keyturn_now() AND ${HOSTED}`;

/** A write to a wait applies only while it is open: before its deadline (D1), with its host there. */
export const WAITING = `id = ? AND status = 'input_required' AND deadline > keyturn_now() AND ${HOSTED}`;

/**
 * Locks a task for the rest of the transaction, before the conditional write that reads the clock (R4): a write that
 * waited for its row in the same statement would compare with the time at which it began to wait.
 */
export async function lockTask(queries: Queries, taskId: string): Promise<void> {
  if (queries.lock === '') return; // The transaction holds the whole file already.
  await queries.get(`SELECT 1 AS one FROM tasks WHERE id = ?${queries.lock}`, taskId);
}

/** Closes what an ended task still asked for, within the caller's transaction. */
export async function closeQuestions(queries: Queries, taskId: string): Promise<void> {
  await queries.run(
    `UPDATE elicitations SET finished_at = keyturn_now(), outcome = 'ended', reask_at = NULL
     WHERE task_id = ? AND finished_at IS NULL`,
    taskId,
  );
}

/**
 * Ends a task within the caller's transaction: status, outcome, lifetime, questions, audit, hint. The caller has
 * locked the task.
 */
export async function endTask(
  queries: Queries,
  ending: {
    task: Pick<Task, 'id' | 'owner' | 'clientId'>;
    status: 'completed' | 'failed' | 'cancelled';
    outcome: Outcome | null;
    statusMessage: string;
    move: string;
    /** Condition of the conditional write. */
    where: string;
    whereValues: readonly (string | number)[];
    /** When the task ended; the ledger's now by default. */
    atMs?: number;
  },
): Promise<Task | undefined> {
  // One instant for all columns; a parameter, so that there is one statement and not one for each instant.
  const atMs = ending.atMs ?? (await queries.nowMs());
  const row = await queries.get<TaskRow>(
    `UPDATE tasks SET status = ?, outcome = ?, status_message = ?, updated_at = ?, ttl_ms = ${ttlCovering('?')},
       ended_expiry = created_at + ${ttlCovering('?')}, ${ENDED}
     WHERE ${ending.where} RETURNING ${TASK_COLUMNS}`,
    ending.status,
    ending.outcome === null ? null : JSON.stringify(ending.outcome),
    ending.statusMessage,
    ...Array.from({ length: 5 }, () => atMs),
    ...ending.whereValues,
  );
  if (row === undefined) return undefined;
  await closeQuestions(queries, row.id);
  await record(queries, {
    event: 'task.ended',
    owner: ending.task.owner,
    clientId: ending.task.clientId,
    taskId: ending.task.id,
    outcome: ending.status,
    facts: {
      move: ending.move,
      ...(ending.outcome?.kind === 'error' ? { reason: ending.outcome.reason } : {}),
    },
  });
  await queries.hint({ kind: 'task', taskId: row.id });
  return toTask(row);
}

export function taskLedger(engine: SqlEngine) {
  async function view(queries: Queries, row: (TaskRow & { now_ms: number }) | undefined) {
    if (row === undefined) return undefined;
    const nowMs = row.now_ms;
    const task = effectiveTask(toTask(row), nowMs);
    if (task === undefined) return undefined;
    const asked =
      task.status === 'input_required'
        ? await queries.all<ElicitationRow>(
            `SELECT * FROM elicitations WHERE task_id = ? AND finished_at IS NULL ORDER BY created_at, input_key`,
            task.id,
          )
        : [];
    return { task, asked: asked.map(toElicitation), nowMs };
  }

  return {
    /** Creates a task, or finds the one that the same call created before (D7). Durable when it resolves. */
    createTask: (fresh: NewTask, limits: CreationLimits): Promise<Creation> =>
      engine.write(async (queries): Promise<Creation> => {
        const { owner, clientId, tool, idempotency } = fresh;
        const blocked = await queries.get(`SELECT 1 AS one FROM blocked_owners WHERE owner = ?`, owner);
        if (blocked !== undefined) return { kind: 'blocked' };
        const same = async (): Promise<Creation | undefined> => {
          if (idempotency === null) return undefined;
          const row = await queries.get<TaskRow & { idem_digest: string; now_ms: number }>(
            `SELECT ${TASK_COLUMNS}, idem_digest, keyturn_now() AS now_ms FROM tasks
             WHERE owner = ? AND client_id = ? AND tool = ? AND idem_key = ?`,
            owner,
            clientId,
            tool,
            idempotency.key,
          );
          if (row === undefined) return undefined;
          const task = effectiveTask(toTask(row), row.now_ms);
          if (task === undefined) {
            // Its lifetime is over: forgotten, and so is its key.
            await queries.run(`UPDATE tasks SET idem_key = NULL WHERE id = ?`, row.id);
            return undefined;
          }
          return row.idem_digest === idempotency.digest ? { kind: 'existing', task } : { kind: 'conflict' };
        };
        const before = await same();
        if (before !== undefined) return before;
        if (limits.queueFull === true) return { kind: 'queue full' };
        const counted = await queries.get<{ open: number }>(
          `SELECT count(*) AS open FROM (SELECT 1 AS one FROM tasks WHERE owner = ? AND is_open = 1 LIMIT ?) AS few`,
          owner,
          limits.openPerOwner,
        );
        const open = Number(counted?.open ?? 0);
        if (open >= limits.openPerOwner) return { kind: 'limit', open };
        const row = await queries.get<TaskRow>(
          `INSERT INTO tasks (id, owner, client_id, client_name, tool, args, idem_key, idem_kind, idem_digest,
             status, status_message, created_at, updated_at, ttl_ms, term, rev, due_at, strikes, modes, interaction,
             on_cancel, host_lease_ms, host_until, trace, is_open)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'working', ?, keyturn_now(), keyturn_now(), ?, 0, 1, keyturn_now(), 0,
             ?, ?, ?, ?, keyturn_now() + ?, ?, 1)
           ON CONFLICT DO NOTHING RETURNING ${TASK_COLUMNS}`,
          fresh.id,
          owner,
          clientId,
          fresh.clientName,
          tool,
          JSON.stringify(fresh.args),
          idempotency?.key ?? null,
          idempotency?.kind ?? null,
          idempotency?.digest ?? null,
          fresh.statusMessage,
          fresh.ttlMs,
          JSON.stringify(fresh.modes),
          fresh.interaction,
          fresh.onCancel,
          fresh.hostLeaseMs,
          fresh.hostLeaseMs,
          fresh.trace,
        );
        // Another transaction created it between our look and our insert.
        if (row === undefined) return (await same()) ?? { kind: 'conflict' };
        await record(queries, {
          event: 'task.created',
          owner,
          clientId,
          taskId: fresh.id,
          outcome: 'working',
          facts: { tool },
        });
        await queries.hint({ kind: 'due' });
        return { kind: 'created', task: toTask(row) };
      }),

    /** A task as it is at this instant, whoever asks; undefined when unknown or past its lifetime. */
    readTask: (taskId: string): Promise<TaskView | undefined> =>
      engine.read(async (queries) =>
        view(
          queries,
          await queries.get<TaskRow & { now_ms: number }>(
            `SELECT ${TASK_COLUMNS}, keyturn_now() AS now_ms FROM tasks WHERE id = ?`,
            taskId,
          ),
        ),
      ),

    /** Tasks that an owner started through one client, oldest first. `after` is the last one of the page before. */
    listTasks: (
      owner: string,
      clientId: string,
      page: { after: { createdAtMs: number; id: string } | null; limit: number },
    ): Promise<Task[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<TaskRow & { now_ms: number }>(
          `SELECT ${TASK_COLUMNS}, keyturn_now() AS now_ms FROM tasks
           WHERE owner = ? AND client_id = ? AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`,
          owner,
          clientId,
          page.after?.createdAtMs ?? -1,
          page.after?.id ?? '',
          page.limit,
        );
        return rows
          .map((row) => effectiveTask(toTask(row), row.now_ms))
          .filter((task): task is Task => task !== undefined);
      }),

    /**
     * Claims due tasks, fairly: the next of the owner with the fewest running first, at most `perOwner` of one owner
     * at a time. Owners who may have no more are passed over before the longest due are looked at, so that no crowd
     * keeps others from their turn. Each claim has a new term.
     */
    claimTasks: (claim: {
      holder: string;
      leaseMs: number;
      limit: number;
      perOwner: number;
    }): Promise<Task[]> =>
      engine.write(async (queries) => {
        const found = await queries.all<{ id: string }>(
          `WITH running AS (
             SELECT owner, count(*) AS many FROM tasks WHERE lease_until IS NOT NULL GROUP BY owner
           ), due AS (
             SELECT id, owner, due_at FROM tasks WHERE due_at <= (SELECT keyturn_now())
               AND owner NOT IN (SELECT owner FROM running WHERE many >= ?)
             ORDER BY due_at, owner, id LIMIT 5000
           ), placed AS (
             SELECT due.id, due.due_at,
               ROW_NUMBER() OVER (PARTITION BY due.owner ORDER BY due.due_at, due.id) + COALESCE(running.many, 0) AS place
             FROM due LEFT JOIN running ON running.owner = due.owner
           )
           SELECT id FROM tasks WHERE id IN (
             SELECT id FROM placed WHERE place <= ? ORDER BY place, due_at LIMIT ?)${queries.lockFree}`,
          claim.perOwner,
          claim.perOwner,
          claim.limit,
        );
        const claimed: Task[] = [];
        for (const { id } of found) {
          const row = await queries.get<TaskRow>(
            `UPDATE tasks SET term = term + 1, holder = ?, lease_until = keyturn_now() + ?, due_at = NULL,
               strikes = strikes + 1, ${TTL_UPKEEP}
             WHERE id = ? AND status = 'working' AND due_at <= keyturn_now() AND ${HOSTED} RETURNING ${TASK_COLUMNS}`,
            claim.holder,
            claim.leaseMs,
            id,
          );
          if (row !== undefined) claimed.push(toTask(row));
        }
        return claimed;
      }),

    /** Renews a worker's lease and, in the same write, says how far it is. */
    renewClaim: (
      claim: Claim & { leaseMs: number; progress?: Progress | null; statusMessage?: string },
    ): Promise<Won> =>
      engine.write(async (queries) => {
        const told = claim.progress !== undefined || claim.statusMessage !== undefined;
        await lockTask(queries, claim.taskId);
        const row = await queries.get<TaskRow>(
          `UPDATE tasks SET lease_until = keyturn_now() + ?, ${TTL_UPKEEP}
             ${told ? ', progress = COALESCE(?, progress), status_message = COALESCE(?, status_message), rev = rev + 1, updated_at = keyturn_now()' : ''}
           WHERE ${HELD} RETURNING ${TASK_COLUMNS}`,
          claim.leaseMs,
          ...(told
            ? [
                claim.progress === undefined ? null : JSON.stringify(claim.progress),
                claim.statusMessage ?? null,
              ]
            : []),
          claim.taskId,
          claim.term,
        );
        if (row === undefined) return LOST;
        if (told) await queries.hint({ kind: 'task', taskId: claim.taskId });
        return { won: true, task: toTask(row) };
      }),

    /**
     * Saves a checkpoint together with the records that it stands for: both or neither (R25). Records are told apart
     * by their id, so that a page that is written again changes nothing.
     */
    saveCheckpoint: (
      claim: Claim & {
        leaseMs: number;
        checkpoint: Json;
        progress?: Progress | null;
        statusMessage?: string;
        records?: { collection: string; rows: readonly { id: string; body: Json }[] };
      },
    ): Promise<Won> =>
      engine.write(async (queries) => {
        await lockTask(queries, claim.taskId);
        const row = await queries.get<TaskRow>(
          `UPDATE tasks SET checkpoint = ?, lease_until = keyturn_now() + ?, strikes = 0, timers = 0,
             troubled_since = NULL, ${TTL_UPKEEP},
             progress = COALESCE(?, progress), status_message = COALESCE(?, status_message), rev = rev + 1,
             updated_at = keyturn_now()
           WHERE ${HELD} RETURNING ${TASK_COLUMNS}`,
          JSON.stringify(claim.checkpoint),
          claim.leaseMs,
          claim.progress === undefined ? null : JSON.stringify(claim.progress),
          claim.statusMessage ?? null,
          claim.taskId,
          claim.term,
        );
        if (row === undefined) return LOST;
        for (const { id, body } of claim.records?.rows ?? []) {
          await queries.run(
            `INSERT INTO records (collection, owner, id, body, task_id, written_at)
             VALUES (?, ?, ?, ?, ?, keyturn_now())
             ON CONFLICT (collection, owner, id) DO UPDATE SET body = excluded.body, task_id = excluded.task_id,
               written_at = excluded.written_at`,
            claim.records?.collection ?? '',
            row.owner,
            id,
            JSON.stringify(body),
            claim.taskId,
          );
        }
        await queries.hint({ kind: 'task', taskId: claim.taskId });
        return { won: true, task: toTask(row) };
      }),

    /**
     * Gives a task back, due after `delayMs`: for a durable `timer`, because of `trouble` at the provider, or for a
     * `shutdown`. Releases the worker; the next claim has a new term.
     */
    parkTask: (
      claim: Claim & {
        delayMs: number;
        why: 'timer' | 'trouble' | 'shutdown';
        /** Sleeps since the checkpoint that are over after this one. */
        timers?: number;
        statusMessage?: string;
      },
    ): Promise<Won> =>
      engine.write(async (queries) => {
        await lockTask(queries, claim.taskId);
        const delayMs = Math.max(0, Math.ceil(claim.delayMs));
        const row = await queries.get<TaskRow>(
          // The lifetime covers the delay as well.
          `UPDATE tasks SET due_at = keyturn_now() + ?, holder = NULL, lease_until = NULL, strikes = 0,
             ttl_ms = ${ttlCovering('keyturn_now() + ?')},
             status_message = COALESCE(?, status_message), timers = COALESCE(?, timers),
             troubled_since = ${claim.why === 'trouble' ? 'COALESCE(troubled_since, keyturn_now())' : 'troubled_since'},
             term = term + 1, rev = rev + 1, updated_at = keyturn_now()
           WHERE ${HELD} RETURNING ${TASK_COLUMNS}`,
          delayMs,
          delayMs,
          delayMs,
          claim.statusMessage ?? null,
          claim.timers ?? null,
          claim.taskId,
          claim.term,
        );
        if (row === undefined) return LOST;
        await queries.hint({ kind: 'task', taskId: claim.taskId });
        await queries.hint({ kind: 'due' });
        return { won: true, task: toTask(row) };
      }),

    /** Ends a task from its worker: moves `complete` and `fail`. */
    finishTask: (claim: Claim & { outcome: Outcome; statusMessage: string }): Promise<Won> =>
      engine.write(async (queries) => {
        const current = await queries.get<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?${queries.lock}`,
          claim.taskId,
        );
        if (current === undefined) return LOST;
        const completes = claim.outcome.kind === 'result';
        const task = await endTask(queries, {
          task: toTask(current),
          status: completes ? 'completed' : 'failed',
          move: completes ? 'complete' : 'fail',
          outcome: claim.outcome,
          statusMessage: claim.statusMessage,
          where: HELD,
          whereValues: [claim.taskId, claim.term],
        });
        return task === undefined ? LOST : { won: true, task };
      }),

    /**
     * Cancels a task of an owner: move `cancel`. A task that has ended, also one whose deadline has passed unswept,
     * stays as it is.
     */
    cancelTask: (owner: string, taskId: string, statusMessage: string): Promise<Won> =>
      engine.write(async (queries) => {
        const current = await queries.get<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ? AND owner = ?${queries.lock}`,
          taskId,
          owner,
        );
        if (current === undefined) return LOST;
        const task = await endTask(queries, {
          task: toTask(current),
          status: 'cancelled',
          move: 'cancel',
          outcome: null,
          statusMessage,
          where: `id = ? AND is_open = 1 AND (deadline IS NULL OR deadline > keyturn_now()) AND ${HOSTED}`,
          whereValues: [taskId],
        });
        return task === undefined ? LOST : { won: true, task };
      }),

    /** Extends the host lease of a task (R27). A lease that is over stays over. */
    renewHostLease: (taskId: string): Promise<number> =>
      engine.write(async (queries) => {
        await lockTask(queries, taskId);
        return queries.run(
          `UPDATE tasks SET host_until = keyturn_now() + host_lease_ms
           WHERE id = ? AND is_open = 1 AND host_until > keyturn_now()`,
          taskId,
        );
      }),

    /** Notes that a result has reached its client: an implicit key matches no longer (R24). */
    markDelivered: (taskId: string): Promise<number> =>
      engine.write((queries) =>
        queries.run(
          `UPDATE tasks SET idem_key = NULL WHERE id = ? AND idem_kind = 'implicit' AND is_open = 0`,
          taskId,
        ),
      ),

    /** How much is due, leased, waiting; bounded counting. */
    countTasks: (): Promise<{ due: number; leased: number }> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ due: number; leased: number }>(
          `SELECT (SELECT count(*) FROM (SELECT 1 AS one FROM tasks WHERE due_at <= (SELECT keyturn_now()) LIMIT 100000) AS a) AS due,
                  (SELECT count(*) FROM tasks WHERE lease_until IS NOT NULL) AS leased`,
        );
        return { due: Number(row?.due ?? 0), leased: Number(row?.leased ?? 0) };
      }),

    /** The earliest instant at which a task becomes due, if any, and the clock now. */
    nextDue: (): Promise<{ atMs: number | null; nowMs: number }> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ at: number | null; now_ms: number }>(
          `SELECT (SELECT due_at FROM tasks WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1) AS at, keyturn_now() AS now_ms`,
        );
        return { atMs: row?.at ?? null, nowMs: row?.now_ms ?? 0 };
      }),

    /** Answers that a job already has, by name of the question. */
    readAnswers: (taskId: string): Promise<Elicitation[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<ElicitationRow>(
          `SELECT * FROM elicitations WHERE task_id = ? AND finished_at IS NOT NULL ORDER BY created_at, input_key`,
          taskId,
        );
        return rows.map(toElicitation);
      }),

    /** Records of a collection that belong to an owner, by id. */
    readRecords: (
      collection: string,
      owner: string,
      page: { afterId: string; limit: number },
    ): Promise<{ id: string; body: Json }[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<{ id: string; body: string }>(
          `SELECT id, body FROM records WHERE collection = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?`,
          collection,
          owner,
          page.afterId,
          page.limit,
        );
        return rows.map((row) => ({ id: row.id, body: JSON.parse(row.body) as Json }));
      }),
  };
}
