/**
 * The wait of a request for its task (multi round-trip face): until the task has ended, asks something that this client
 * can show, or the leg is over. A leg ends before clients and proxies lose patience; the next one goes on waiting.
 */
import type { Caller } from '../../engine/caller.ts';
import type { InputRequest, TaskSnapshot, Tasks } from '../../engine/tasks.ts';
import { isTerminal } from '../../task/status.ts';
import type { Reach } from './detailed-task.ts';

/** What a leg came to. */
export type Leg =
  | { readonly kind: 'ended'; readonly task: TaskSnapshot }
  | { readonly kind: 'asks'; readonly task: TaskSnapshot; readonly inputs: readonly InputRequest[] }
  /** Links are open that may go as text. */
  | { readonly kind: 'links'; readonly task: TaskSnapshot; readonly links: readonly InputRequest[] }
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
  readonly reach: Reach;
  /** Links as text end the leg at once; otherwise they were given before, and only its end repeats them. */
  readonly givesLinks: boolean;
  /** How long at most, in milliseconds. */
  readonly legMs: number;
  readonly signal: AbortSignal;
  /** Monotonic. */
  readonly nowMs: () => number;
}): Promise<Leg | undefined> {
  const { tasks, caller, taskId, reach, signal, nowMs } = options;
  const untilMs = nowMs() + options.legMs;
  let beyondRev = -1;
  for (;;) {
    const timeoutMs = Math.max(0, untilMs - nowMs());
    const task = await tasks.waitForChange(caller, taskId, { beyondRev, timeoutMs, signal });
    if (task === undefined) return undefined;
    if (isTerminal(task.status)) return { kind: 'ended', task };
    const inputs = task.inputs.filter((input) => reach[input.mode]);
    if (inputs.length > 0) return { kind: 'asks', task, inputs };
    const over = signal.aborted || nowMs() >= untilMs;
    const links = reach.linksAsText ? task.inputs.filter((input) => input.mode === 'url') : [];
    if (links.length > 0 && (options.givesLinks || over)) return { kind: 'links', task, links };
    if (over) return { kind: 'goes on', task };
    beyondRev = task.rev;
  }
}
