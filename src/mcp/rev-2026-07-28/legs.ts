/**
 * The wait of a request for its task (multi round-trip face): until the task has ended, asks something that this client
 * can show, or the leg is over. A leg ends before clients and proxies lose patience; the next one goes on waiting.
 */
import type { Caller } from '../../engine/caller.ts';
import type { InputRequest, TaskSnapshot, Tasks } from '../../engine/tasks.ts';
import type { ElicitationModes } from '../../elicitation/capability.ts';
import { isTerminal } from '../../task/status.ts';

/** What a leg came to. */
export type Leg =
  | { readonly kind: 'ended'; readonly task: TaskSnapshot }
  | { readonly kind: 'asks'; readonly task: TaskSnapshot; readonly inputs: readonly InputRequest[] }
  | { readonly kind: 'goes on'; readonly task: TaskSnapshot };

/**
 * Waits for a task of the caller.
 *
 * @returns undefined when the caller has no such task (any more).
 */
export async function holdLeg(options: {
  readonly tasks: Tasks;
  readonly caller: Caller;
  readonly taskId: string;
  readonly modes: ElicitationModes;
  /** How long at most, in milliseconds. */
  readonly legMs: number;
  readonly signal: AbortSignal;
  /** Monotonic. */
  readonly nowMs: () => number;
}): Promise<Leg | undefined> {
  const { tasks, caller, taskId, modes, signal, nowMs } = options;
  const untilMs = nowMs() + options.legMs;
  let beyondRev = -1;
  for (;;) {
    const timeoutMs = Math.max(0, untilMs - nowMs());
    const task = await tasks.waitForChange(caller, taskId, { beyondRev, timeoutMs, signal });
    if (task === undefined) return undefined;
    if (isTerminal(task.status)) return { kind: 'ended', task };
    const inputs = task.inputs.filter((input) => modes[input.mode]);
    if (inputs.length > 0) return { kind: 'asks', task, inputs };
    if (signal.aborted || nowMs() >= untilMs) return { kind: 'goes on', task };
    beyondRev = task.rev;
  }
}
