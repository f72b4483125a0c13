/** What the engine counts and times. `http/metrics.ts` exposes it; without one, nothing is kept. */

/** Counted events, with the labels that go with each. */
export interface Counts {
  /** A task ended. */
  task_ended: { status: string; reason: string };
  task_started: { tool: string };
  /** A task stopped for a person. */
  task_stopped: { kind: string };
  /** A refresh came to an outcome. */
  refresh: { outcome: string };
  /** An authorization response came to an outcome. */
  exchange: { outcome: string };
  /** A request, page or task was refused. */
  refusal: { reason: string };
}

/** Timed spans, in milliseconds. */
export interface Timings {
  /** From the stop to the grant. */
  wait: Record<string, never>;
  /** From the loss of a term to the end of its work. */
  teardown: Record<string, never>;
}

export interface Meter {
  count<Name extends keyof Counts>(name: Name, labels: Counts[Name]): void;
  time<Name extends keyof Timings>(name: Name, ms: number, labels: Timings[Name]): void;
}

/** A meter that keeps nothing. */
export const noMeter: Meter = { count() {}, time() {} };
