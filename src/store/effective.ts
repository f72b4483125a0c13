/**
 * What a task *is* at an instant, whether or not the sweeper has come by: a wait past its deadline has failed, a task
 * whose host has gone has failed, a finished task past its lifetime is unknown. Reads go through here, the sweeper
 * writes the same, so that all methods agree before and after a sweep (D5). Pure.
 */
import { REASONS, TASK_ERROR_CODES } from '../errors.ts';
import { expiresAtMs, READ_BACK_MARGIN_MS } from '../task/lifetime.ts';
import { isTerminal } from '../task/status.ts';
import type { Outcome, Task } from './records.ts';

/** An ending that time alone brings about. */
export interface Lapse {
  readonly reason: 'deadline_passed' | 'host_gone';
  readonly atMs: number;
}

/** Which ending has come, if any: the earlier one counts. */
export function lapseOf(task: Task, nowMs: number): Lapse | undefined {
  if (isTerminal(task.status)) return undefined;
  const lapses: Lapse[] = [];
  if (task.deadlineMs !== null && nowMs >= task.deadlineMs) {
    lapses.push({ reason: 'deadline_passed', atMs: task.deadlineMs });
  }
  if (task.hostUntilMs !== null && nowMs >= task.hostUntilMs) {
    lapses.push({ reason: 'host_gone', atMs: task.hostUntilMs });
  }
  return lapses.toSorted((a, b) => a.atMs - b.atMs)[0];
}

/** Outcome and message of such an ending. */
export function lapsed(reason: Lapse['reason']): { outcome: Outcome; statusMessage: string } {
  const advice =
    reason === 'deadline_passed'
      ? 'Nothing was resumed. Start the task again for a new link.'
      : 'Its work was stopped. Start the task again.';
  return {
    statusMessage: `${REASONS[reason]} ${advice}`,
    outcome: {
      kind: 'error',
      code: TASK_ERROR_CODES[reason],
      message: REASONS[reason],
      reason,
      facts: {},
    },
  };
}

/** The task at `nowMs`, or undefined when its lifetime is over. */
export function effectiveTask(task: Task, nowMs: number): Task | undefined {
  const lapse = lapseOf(task, nowMs);
  const current: Task =
    lapse === undefined
      ? task
      : {
          ...task,
          ...lapsed(lapse.reason),
          status: 'failed',
          updatedAtMs: lapse.atMs,
          ttlMs: Math.max(task.ttlMs, lapse.atMs - task.createdAtMs + READ_BACK_MARGIN_MS),
          term: task.term + 1,
          rev: task.rev + 1,
          dueAtMs: null,
          holder: null,
          leaseUntilMs: null,
          deadlineMs: null,
          hostUntilMs: null,
        };
  if (isTerminal(current.status) && nowMs >= expiresAtMs(current)) return undefined;
  return current;
}
