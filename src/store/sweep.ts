/**
 * What time alone brings about, in bounded batches: one transaction each, so that other writes come between. Every
 * statement repeats its condition, so that sweepers of several nodes do no harm to each other.
 */
import { refusalOutcome, lockConnection, wakeWaiters } from './waits.ts';
import { lapseOf, lapsed } from './effective.ts';
import { TASK_COLUMNS, toTask, type TaskRow } from './rows.ts';
import type { SqlEngine } from './sql.ts';
import { endTask, HELD } from './tasks.ts';

/** A worker may die this often on a task without a checkpoint before the task is given up. */
export const MOST_STRIKES = 5;

export function sweepLedger(engine: SqlEngine) {
  return {
    /** Ends waits whose deadline has passed and tasks whose host has gone: moves `expire` and `abandon`. */
    sweepLapsed: (limit: number): Promise<string[]> =>
      engine.write(async (queries) => {
        const rows = await queries.all<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE id IN (
             SELECT id FROM (SELECT id FROM tasks WHERE deadline <= (SELECT keyturn_now()) ORDER BY deadline LIMIT ?) AS late
             UNION SELECT id FROM (SELECT id FROM tasks WHERE host_until <= (SELECT keyturn_now()) ORDER BY host_until LIMIT ?) AS gone
           ) ORDER BY id${queries.lockFree}`,
          limit,
          limit,
        );
        const ended: string[] = [];
        const nowMs = await queries.nowMs();
        for (const row of rows) {
          const task = toTask(row);
          const lapse = lapseOf(task, nowMs);
          if (lapse === undefined) continue;
          const done = await endTask(queries, {
            task,
            status: 'failed',
            move: lapse.reason === 'host_gone' ? 'abandon' : 'expire',
            ...lapsed(lapse.reason),
            where: `id = ? AND is_open = 1 AND (deadline <= keyturn_now() OR host_until <= keyturn_now())`,
            whereValues: [task.id],
            atMs: lapse.atMs,
          });
          if (done !== undefined) ended.push(task.id);
        }
        return ended;
      }),

    /** Makes tasks due again whose worker's lease has lapsed; gives up those that keep killing workers. */
    sweepLeases: (limit: number): Promise<{ due: string[]; givenUp: string[] }> =>
      engine.write(async (queries) => {
        const rows = await queries.all<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE lease_until <= (SELECT keyturn_now()) ORDER BY lease_until LIMIT ?${queries.lockFree}`,
          limit,
        );
        const due: string[] = [];
        const givenUp: string[] = [];
        for (const row of rows) {
          if (row.strikes >= MOST_STRIKES) {
            const done = await endTask(queries, {
              task: toTask(row),
              status: 'failed',
              move: 'give up',
              outcome: {
                kind: 'error',
                code: -32603,
                message: 'The work stopped its worker too often.',
                reason: 'job_failed',
                facts: { strikes: row.strikes },
              },
              statusMessage: 'The work stopped its worker too often and was given up.',
              where: `id = ? AND status = 'working' AND lease_until <= keyturn_now()`,
              whereValues: [row.id],
            });
            if (done !== undefined) givenUp.push(row.id);
            continue;
          }
          // The term grows here as well: the old holder is out the moment its lease is over.
          const changed = await queries.run(
            `UPDATE tasks SET due_at = keyturn_now(), holder = NULL, lease_until = NULL, term = term + 1
             WHERE id = ? AND lease_until <= keyturn_now()`,
            row.id,
          );
          if (changed > 0) due.push(row.id);
        }
        if (due.length > 0) await queries.hint({ kind: 'due' });
        return { due, givenUp };
      }),

    /** Wakes waits that are satisfied, whatever happened to the wake-up that belonged to the grant (R3). */
    sweepSatisfied: (limit: number): Promise<string[]> =>
      engine.write(async (queries) => {
        const rows = await queries.all<{ id: string }>(
          `SELECT DISTINCT c.id AS id FROM connections c JOIN elicitations e ON e.connection_id = c.id
           WHERE c.updated_at > (SELECT keyturn_now() - 900000) AND c.status = 'active' AND e.finished_at IS NULL
             AND (e.judged_generation IS NULL OR e.judged_generation <> c.generation) ORDER BY c.id LIMIT ?`,
          limit,
        );
        const resumed: string[] = [];
        for (const { id } of rows) {
          const connection = await lockConnection(queries, id);
          if (connection !== undefined) resumed.push(...(await wakeWaiters(queries, connection)));
        }
        return resumed;
      }),

    /** Forgets finished tasks past their lifetime, with their questions and attempts. The audit stays. */
    sweepExpired: (limit: number): Promise<string[]> =>
      engine.write(async (queries) => {
        const rows = await queries.all<{ id: string }>(
          // An exchange under way still needs its question (R6): such a task is unknown already, its rows go later.
          `SELECT id FROM tasks WHERE ended_expiry <= (SELECT keyturn_now())
             AND id NOT IN (SELECT task_id FROM attempts WHERE phase IN ('exchanging', 'exchanged'))
           ORDER BY ended_expiry LIMIT ?${queries.lockFree}`,
          limit,
        );
        for (const { id } of rows) {
          await queries.run(
            `DELETE FROM attempts WHERE elicitation_id IN (SELECT id FROM elicitations WHERE task_id = ?)`,
            id,
          );
          await queries.run(`DELETE FROM elicitations WHERE task_id = ?`, id);
          await queries.run(`DELETE FROM tasks WHERE id = ?`, id);
        }
        return rows.map((row) => row.id);
      }),

    /** Vault keys that may be deleted now; call `forgetOrphan` after deleting (R22). */
    dueOrphans: (limit: number): Promise<string[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<{ record_key: string }>(
          `SELECT record_key FROM vault_orphans WHERE delete_after <= (SELECT keyturn_now()) ORDER BY delete_after LIMIT ?`,
          limit,
        );
        return rows.map((row) => row.record_key);
      }),

    forgetOrphan: (recordKey: string): Promise<number> =>
      engine.write((queries) => queries.run(`DELETE FROM vault_orphans WHERE record_key = ?`, recordKey)),

    /** Ends a working task whose job is no longer defined. */
    failUnknownJob: (taskId: string, term: number): Promise<boolean> =>
      engine.write(async (queries) => {
        const row = await queries.get<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?${queries.lock}`,
          taskId,
        );
        if (row === undefined) return false;
        const done = await endTask(queries, {
          task: toTask(row),
          status: 'failed',
          move: 'fail',
          outcome: refusalOutcome('job_unknown', { tool: row.tool }),
          statusMessage: 'This server no longer has the tool that the task runs.',
          where: HELD,
          whereValues: [taskId, term],
        });
        return done !== undefined;
      }),
  };
}
