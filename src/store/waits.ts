/**
 * Waits: a task stops for a person, is answered, is woken. A stop and a grant both lock the connection first and then
 * tasks in the order of their ids (R3); every comparison with a deadline stands inside the conditional write (R4).
 */
import { REASONS, TASK_ERROR_CODES, type TaskErrorReason } from '../errors.ts';
import { answerEffect } from '../elicitation/answer.ts';
import { readForm } from '../elicitation/form.ts';
import { reaskAtMs } from '../elicitation/reask.ts';
import { READ_BACK_MARGIN_MS } from '../task/lifetime.ts';
import { record } from './audit.ts';
import { lapseOf } from './effective.ts';
import type { Connection, Elicitation, Json, Link, Need, Outcome, Task } from './records.ts';
import {
  TASK_COLUMNS,
  toConnection,
  toElicitation,
  toTask,
  type ConnectionRow,
  type ElicitationRow,
  type TaskRow,
} from './rows.ts';
import { satisfies } from './satisfaction.ts';
import type { Queries, SqlEngine } from './sql.ts';
import { endTask, HELD, lockTask, WAITING, type Claim } from './tasks.ts';

/** What came of a stop. */
export type Stop =
  | { readonly kind: 'stopped'; readonly task: Task; readonly asked: readonly Elicitation[] }
  /** What was needed has arrived meanwhile: the worker still holds the task and goes on. */
  | { readonly kind: 'go on' }
  | { readonly kind: 'lost' };

/** What came of answers to a task. */
export interface Answered {
  /** Keys whose answer changed something. */
  readonly taken: readonly string[];
  /** Problems of a form's content by key; the question stays open. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

/** Ending of a task by a refusal with a stable code. */
export function refusalOutcome(reason: TaskErrorReason, facts: Readonly<Record<string, Json>> = {}): Outcome {
  return { kind: 'error', code: TASK_ERROR_CODES[reason], message: REASONS[reason], reason, facts };
}

/** Locks a connection for the rest of the transaction. */
export async function lockConnection(
  queries: Queries,
  connectionId: string,
): Promise<Connection | undefined> {
  const row = await queries.get<ConnectionRow>(
    `SELECT * FROM connections WHERE id = ?${queries.lock}`,
    connectionId,
  );
  return row === undefined ? undefined : toConnection(row);
}

/** Whether the person has agreed that a client uses a connection (R11). */
export async function isApproved(queries: Queries, connectionId: string, clientId: string): Promise<boolean> {
  const row = await queries.get(
    `SELECT 1 AS one FROM approvals WHERE connection_id = ? AND client_id = ?`,
    connectionId,
    clientId,
  );
  return row !== undefined;
}

/** Writes a question. The key is the need's name, with a number from its second use on: never reused (MCP tasks). */
export async function insertElicitation(
  queries: Queries,
  task: Pick<Task, 'id' | 'owner' | 'clientId'>,
  need: Need,
  wait: { deadlineMs: number; reasks: number },
): Promise<Elicitation> {
  const used = await queries.all<{ input_key: string; name: string }>(
    `SELECT input_key, name FROM elicitations WHERE task_id = ?`,
    task.id,
  );
  // Another need may be called what the next number would make of this one.
  const keys = new Set(used.map((row) => row.input_key));
  let number = used.filter((row) => row.name === need.name).length + 1;
  let key = number === 1 ? need.name : `${need.name}-${number}`;
  while (keys.has(key)) key = `${need.name}-${(number += 1)}`;
  const row = await queries.get<ElicitationRow>(
    `INSERT INTO elicitations (id, task_id, owner, client_id, input_key, name, kind, provider, connection_id, scopes,
       judged_generation, form, message, handle_hash, handle_kid, deadline, created_at, reasks, force_consent)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, keyturn_now(), ?, ?) RETURNING *`,
    need.id,
    task.id,
    task.owner,
    task.clientId,
    key,
    need.name,
    need.kind,
    need.provider,
    need.connectionId,
    JSON.stringify(need.scopes),
    need.judgedGeneration,
    need.schema === null ? null : JSON.stringify(need.schema),
    need.message,
    need.link?.handleHash ?? null,
    need.link?.kid ?? null,
    wait.deadlineMs,
    wait.reasks,
    need.forceConsent ? 1 : 0,
  );
  if (row === undefined) throw new Error('an inserted question was not returned');
  return toElicitation(row);
}

/** Moves a task whose questions are all finished back to `working`, within the caller's transaction. */
async function resumeIfReady(queries: Queries, taskId: string, statusMessage: string): Promise<boolean> {
  const left = await queries.get(
    `SELECT 1 AS one FROM elicitations WHERE task_id = ? AND finished_at IS NULL LIMIT 1`,
    taskId,
  );
  if (left !== undefined) return false;
  const changed = await queries.run(
    `UPDATE tasks SET status = 'working', status_message = ?, due_at = keyturn_now(), deadline = NULL, strikes = 0,
       rev = rev + 1, updated_at = keyturn_now()
     WHERE ${WAITING}`,
    statusMessage,
    taskId,
  );
  if (changed === 0) return false;
  await queries.hint({ kind: 'task', taskId });
  await queries.hint({ kind: 'due' });
  return true;
}

/**
 * Wakes every wait in time that a connection now satisfies. The caller has locked the connection.
 *
 * @returns ids of the tasks that went back to `working`.
 */
export async function wakeWaiters(queries: Queries, connection: Connection): Promise<string[]> {
  const waiting = await queries.all<ElicitationRow>(
    `SELECT * FROM elicitations WHERE connection_id = ? AND finished_at IS NULL ORDER BY task_id, input_key`,
    connection.id,
  );
  const resumed: string[] = [];
  for (const row of waiting) {
    const elicitation = toElicitation(row);
    const approved = await isApproved(queries, connection.id, elicitation.clientId);
    if (!satisfies(connection, elicitation, approved)) continue;
    const task = await queries.get<TaskRow>(
      `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?${queries.lock}`,
      elicitation.taskId,
    );
    if (task?.status !== 'input_required' || lapseOf(toTask(task), await queries.nowMs())) continue;
    const finished = await queries.run(
      `UPDATE elicitations SET finished_at = keyturn_now(), outcome = 'granted', reask_at = NULL
       WHERE id = ? AND finished_at IS NULL AND deadline > keyturn_now()`,
      elicitation.id,
    );
    if (finished === 0) continue;
    await record(queries, {
      event: 'wait.satisfied',
      owner: elicitation.owner,
      clientId: elicitation.clientId,
      taskId: elicitation.taskId,
      connectionId: connection.id,
      outcome: 'granted',
      facts: { generation: connection.generation },
    });
    if (await resumeIfReady(queries, elicitation.taskId, 'Signed in. The work goes on.')) {
      resumed.push(elicitation.taskId);
    }
  }
  return resumed;
}

export function waitLedger(engine: SqlEngine) {
  return {
    /**
     * Stops a task for a person: move `stop`. Writes the questions and releases the worker in one transaction, unless
     * what is needed has arrived since it was judged missing (R3).
     */
    stopTask: (
      claim: Claim & { needs: readonly Need[]; waitMs: number; statusMessage: string },
    ): Promise<Stop> =>
      engine.write(async (queries): Promise<Stop> => {
        const current = await queries.get<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?`,
          claim.taskId,
        );
        if (current === undefined) return { kind: 'lost' };
        const ids = claim.needs.map((need) => need.connectionId).filter((id): id is string => id !== null);
        const missing: Need[] = claim.needs.filter((need) => need.connectionId === null);
        for (const connectionId of [...new Set(ids)].toSorted()) {
          const connection = await lockConnection(queries, connectionId);
          const approved = await isApproved(queries, connectionId, current.client_id);
          for (const need of claim.needs.filter((one) => one.connectionId === connectionId)) {
            if (connection === undefined || !satisfies(connection, need, approved)) missing.push(need);
          }
        }
        if (missing.length === 0) return { kind: 'go on' };
        await lockTask(queries, claim.taskId);
        const row = await queries.get<TaskRow>(
          `UPDATE tasks SET status = 'input_required', status_message = ?, deadline = keyturn_now() + ?,
             due_at = NULL, holder = NULL, lease_until = NULL, strikes = 0, term = term + 1, rev = rev + 1,
             updated_at = keyturn_now(),
             ttl_ms = CASE WHEN ttl_ms < keyturn_now() - created_at + ? THEN keyturn_now() - created_at + ? ELSE ttl_ms END
           WHERE ${HELD}
           RETURNING ${TASK_COLUMNS}`,
          claim.statusMessage,
          claim.waitMs,
          claim.waitMs + READ_BACK_MARGIN_MS,
          claim.waitMs + READ_BACK_MARGIN_MS,
          claim.taskId,
          claim.term,
        );
        if (row === undefined) return { kind: 'lost' };
        const task = toTask(row);
        const deadlineMs = task.deadlineMs ?? 0;
        const asked: Elicitation[] = [];
        for (const need of missing) {
          asked.push(await insertElicitation(queries, task, need, { deadlineMs, reasks: 0 }));
          await record(queries, {
            event: 'wait.asked',
            owner: task.owner,
            clientId: task.clientId,
            taskId: task.id,
            connectionId: need.connectionId,
            outcome: need.kind,
            facts: { name: need.name, scopes: [...need.scopes], deadlineMs },
          });
        }
        await queries.hint({ kind: 'task', taskId: task.id });
        return { kind: 'stopped', task, asked };
      }),

    /**
     * Takes a client's answers (D3, D4): unknown, answered and finished keys are ignored, a partial set is fine.
     * Undefined when the owner has no such task.
     */
    answerTask: (
      owner: string,
      taskId: string,
      answers: ReadonlyMap<string, { action: unknown; content: unknown }>,
    ): Promise<Answered | undefined> =>
      engine.write(async (queries): Promise<Answered | undefined> => {
        const row = await queries.get<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ? AND owner = ?${queries.lock}`,
          taskId,
          owner,
        );
        if (row === undefined) return undefined;
        const task = toTask(row);
        const taken: string[] = [];
        const problems: Record<string, readonly string[]> = {};
        // Asked of the ledger once: whatever else a client sends costs no statement.
        const asked = await queries.all<{ input_key: string }>(
          `SELECT input_key FROM elicitations WHERE task_id = ?`,
          taskId,
        );
        const keys = new Set(asked.map((one) => one.input_key));
        for (const [key, answer] of answers) {
          if (!keys.has(key)) continue;
          // Read for every answer: an earlier one may have ended the task.
          const nowMs = await queries.nowMs();
          const found = await queries.get<ElicitationRow>(
            `SELECT * FROM elicitations WHERE task_id = ? AND input_key = ?`,
            taskId,
            key,
          );
          if (found === undefined) continue;
          const elicitation = toElicitation(found);
          const accepted = await queries.get(
            `SELECT 1 AS one FROM elicitations WHERE task_id = ? AND name = ? AND action = 'accept' AND id <> ?`,
            taskId,
            elicitation.name,
            elicitation.id,
          );
          const open =
            lapseOf(task, nowMs) === undefined &&
            elicitation.answeredAtMs === null &&
            elicitation.finishedAtMs === null &&
            nowMs < elicitation.deadlineMs;
          const effect = answerEffect({
            kind: elicitation.kind,
            action: answer.action,
            open,
            acceptedBefore: accepted !== undefined,
            onCancel: task.onCancel,
          });
          await record(queries, {
            event: 'wait.answered',
            owner,
            clientId: task.clientId,
            taskId,
            connectionId: elicitation.connectionId,
            outcome: effect,
            facts: {
              key,
              action: typeof answer.action === 'string' ? answer.action.slice(0, 16) : 'none',
              latencyMs: nowMs - elicitation.createdAtMs,
            },
          });
          if (effect === 'ignore') continue;
          const applied = await apply(queries, task, elicitation, effect, answer, nowMs, problems);
          if (applied) taken.push(key);
        }
        if (Object.keys(problems).length > 0) await tellProblems(queries, taskId, problems);
        return { taken, problems };
      }),

    /** Links that are due to be issued again (D4), oldest first. */
    dueReasks: (limit: number): Promise<Elicitation[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<ElicitationRow>(
          `SELECT * FROM elicitations WHERE reask_at <= (SELECT keyturn_now()) AND finished_at IS NULL ORDER BY reask_at LIMIT ?`,
          limit,
        );
        return rows.map(toElicitation);
      }),

    /**
     * Issues a link again under a new key, unless a sign-in is under way. Earlier links stay good until the deadline.
     */
    reask: (elicitationId: string, fresh: { id: string; link: Link; message: string }): Promise<boolean> =>
      engine.write(async (queries) => {
        const seen = await queries.get<{ task_id: string }>(
          `SELECT task_id FROM elicitations WHERE id = ?`,
          elicitationId,
        );
        if (seen === undefined) return false;
        // The task first, as everybody does who changes its questions.
        await lockTask(queries, seen.task_id);
        const found = await queries.get<ElicitationRow>(
          `SELECT * FROM elicitations WHERE id = ?`,
          elicitationId,
        );
        if (found === undefined || found.reask_at === null || found.finished_at !== null) return false;
        const old = toElicitation(found);
        // Whatever happens below happens once.
        await queries.run(`UPDATE elicitations SET reask_at = NULL WHERE id = ?`, elicitationId);
        const underWay = await queries.get(
          `SELECT 1 AS one FROM attempts WHERE elicitation_id IN (SELECT id FROM elicitations WHERE task_id = ?)
             AND connection_id = ? AND (phase = 'started' OR phase = 'exchanging')
             AND started_at > keyturn_now() - 600000 LIMIT 1`,
          old.taskId,
          old.connectionId,
        );
        if (underWay !== undefined) return false;
        const task = await queries.get<TaskRow>(
          `UPDATE tasks SET rev = rev + 1, updated_at = keyturn_now()
           WHERE ${WAITING} RETURNING ${TASK_COLUMNS}`,
          old.taskId,
        );
        if (task === undefined) return false;
        const need: Need = { ...old, ...fresh };
        await insertElicitation(queries, toTask(task), need, {
          deadlineMs: old.deadlineMs,
          reasks: old.reasks + 1,
        });
        await record(queries, {
          event: 'wait.asked again',
          owner: old.owner,
          clientId: old.clientId,
          taskId: old.taskId,
          connectionId: old.connectionId,
          outcome: old.kind,
        });
        await queries.hint({ kind: 'task', taskId: old.taskId });
        return true;
      }),
  };
}

/** The message of a task whose answer did not fit: an acknowledgement of the protocol has no room for it. */
async function tellProblems(
  queries: Queries,
  taskId: string,
  problems: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const told = Object.entries(problems).map(([key, found]) => `"${key}": ${found.join('; ')}.`);
  const changed = await queries.run(
    `UPDATE tasks SET status_message = ?, rev = rev + 1, updated_at = keyturn_now()
     WHERE id = ? AND status = 'input_required'`,
    `An answer does not fit; the question stays open. ${told.join(' ')}`,
    taskId,
  );
  if (changed > 0) await queries.hint({ kind: 'task', taskId });
}

async function apply(
  queries: Queries,
  task: Task,
  elicitation: Elicitation,
  effect: 'note' | 'finish' | 'decline' | 'cancel',
  answer: { action: unknown; content: unknown },
  nowMs: number,
  problems: Record<string, readonly string[]>,
): Promise<boolean> {
  const inTime = `id = ? AND answered_at IS NULL AND finished_at IS NULL AND deadline > keyturn_now()`;
  switch (effect) {
    case 'note': {
      const action = answer.action as 'accept' | 'decline' | 'cancel';
      const reask =
        action === 'accept'
          ? reaskAtMs({ acceptedAtMs: nowMs, deadlineMs: elicitation.deadlineMs, reasks: elicitation.reasks })
          : undefined;
      const noted = await queries.run(
        `UPDATE elicitations SET answered_at = keyturn_now(), action = ?, reask_at = ? WHERE ${inTime}`,
        action,
        reask ?? null,
        elicitation.id,
      );
      if (noted === 0) return false;
      const until = new Date(elicitation.deadlineMs).toISOString();
      await queries.run(
        `UPDATE tasks SET status_message = ?, rev = rev + 1, updated_at = keyturn_now()
         WHERE id = ? AND status = 'input_required'`,
        `Waiting for the sign-in to be finished in the browser, until ${until}.`,
        task.id,
      );
      await queries.hint({ kind: 'task', taskId: task.id });
      return true;
    }
    case 'finish': {
      const verdict =
        elicitation.schema === null
          ? ({ ok: false, problems: ['no form was asked'] } as const)
          : readForm(elicitation.schema, answer.content);
      if (!verdict.ok) {
        problems[elicitation.key] = verdict.problems;
        return false;
      }
      const done = await queries.run(
        `UPDATE elicitations SET answered_at = keyturn_now(), action = 'accept', content = ?,
           finished_at = keyturn_now(), outcome = 'answered' WHERE ${inTime}`,
        JSON.stringify(verdict.content),
        elicitation.id,
      );
      if (done === 0) return false;
      if (!(await resumeIfReady(queries, task.id, 'Answered. The work goes on.'))) {
        await queries.run(`UPDATE tasks SET rev = rev + 1, updated_at = keyturn_now() WHERE id = ?`, task.id);
        await queries.hint({ kind: 'task', taskId: task.id });
      }
      return true;
    }
    case 'decline':
    case 'cancel': {
      await queries.run(
        `UPDATE elicitations SET answered_at = keyturn_now(), action = ? WHERE ${inTime}`,
        effect,
        elicitation.id,
      );
      const declined = effect === 'decline';
      const ended = await endTask(queries, {
        task,
        status: declined ? 'failed' : 'cancelled',
        move: effect,
        outcome: declined
          ? refusalOutcome('authorization_declined', { asked: elicitation.name, by: 'client' })
          : null,
        statusMessage: declined
          ? `The client declined "${elicitation.name}". Start the task again to be asked again.`
          : `The client dismissed "${elicitation.name}". Start the task again to be asked again.`,
        where: WAITING,
        whereValues: [task.id],
      });
      return ended !== undefined;
    }
  }
}
