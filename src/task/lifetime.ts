/** Lifetime of a task on the wire: `ttlMs` counts from creation (tasks extension, "Tasks"). Pure. */

/** Time kept after a deadline or an end so that a client can read the outcome. */
export const READ_BACK_MARGIN_MS = 10 * 60_000;

/**
 * The lifetime that covers an instant and the read-back margin. Never lower than before (D5).
 *
 * @returns integer milliseconds from creation.
 */
export function ttlCoveringMs(task: { createdAtMs: number; ttlMs: number }, untilMs: number): number {
  return Math.max(task.ttlMs, Math.ceil(untilMs - task.createdAtMs + READ_BACK_MARGIN_MS));
}

/** When a task may be forgotten. */
export function expiresAtMs(task: { createdAtMs: number; ttlMs: number }): number {
  return task.createdAtMs + task.ttlMs;
}

/** A wait is open while now < deadline; at the deadline it is over (D1). */
export function isOpen(deadlineMs: number, nowMs: number): boolean {
  return nowMs < deadlineMs;
}

/** What decides how often a client should look. */
export interface PollInputs {
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  /** 0…1, when the job says how far it is. */
  readonly fraction?: number;
  /** Time since the last change of state. */
  readonly sinceChangeMs: number;
  /** Whether a client still has to show something to a person. */
  readonly unanswered?: boolean;
}

/**
 * The suggested polling interval: short when something is about to happen (just started, just resumed, nearly done),
 * longer the longer nothing does, long while a person is signing in.
 */
export function pollIntervalMs(inputs: PollInputs): number {
  if (inputs.status === 'input_required') return inputs.unanswered === true ? 2_000 : 5_000;
  if (inputs.status !== 'working') return 1_000;
  if (inputs.fraction !== undefined && inputs.fraction >= 0.9) return 500;
  if (inputs.sinceChangeMs < 5_000) return 500;
  if (inputs.sinceChangeMs < 60_000) return 2_000;
  return 5_000;
}
