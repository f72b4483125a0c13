/**
 * The table of moves. Every write of the ledger that changes a task's state names one of these moves, and the
 * diagram in the docs is drawn from this constant.
 */
import type { TaskStatus } from './status.ts';

/** A move: what happens, who may cause it, and under which condition the write applies. */
export interface Transition {
  readonly move: string;
  readonly from: TaskStatus;
  readonly to: TaskStatus;
  /** Who causes it. */
  readonly by: 'worker' | 'person' | 'client' | 'sweeper';
  /** The condition that stands inside the conditional write. */
  readonly when: string;
}

// prettier-ignore
export const TRANSITIONS = [
  { move: 'stop',      from: 'working',        to: 'input_required', by: 'worker',  when: 'term is current, lease is live, judged generation is current' },
  { move: 'complete',  from: 'working',        to: 'completed',      by: 'worker',  when: 'term is current, lease is live' },
  { move: 'fail',      from: 'working',        to: 'failed',         by: 'worker',  when: 'term is current, lease is live' },
  { move: 'resume',    from: 'input_required', to: 'working',        by: 'person',  when: 'now < deadline, everything asked for is there' },
  { move: 'answer',    from: 'input_required', to: 'working',        by: 'client',  when: 'now < deadline, every form is answered' },
  { move: 'decline',   from: 'input_required', to: 'failed',         by: 'client',  when: 'now < deadline, first ask is declined' },
  { move: 'deny',      from: 'input_required', to: 'failed',         by: 'person',  when: 'now < deadline, the provider says access_denied' },
  { move: 'expire',    from: 'input_required', to: 'failed',         by: 'sweeper', when: 'now >= deadline' },
  { move: 'abandon',   from: 'working',        to: 'failed',         by: 'sweeper', when: 'now >= host lease' },
  { move: 'abandon',   from: 'input_required', to: 'failed',         by: 'sweeper', when: 'now >= host lease' },
  { move: 'give up',   from: 'working',        to: 'failed',         by: 'sweeper', when: 'too many workers died on it' },
  { move: 'cancel',    from: 'working',        to: 'cancelled',      by: 'client',  when: 'not ended' },
  { move: 'cancel',    from: 'input_required', to: 'cancelled',      by: 'client',  when: 'not ended' },
] as const satisfies readonly Transition[];

/** The name of a move. */
export type Move = (typeof TRANSITIONS)[number]['move'];

/** Where a move leads from a state, or undefined when the state does not know the move. */
export function destination(from: TaskStatus, move: Move): TaskStatus | undefined {
  return TRANSITIONS.find((row) => row.from === from && row.move === move)?.to;
}

/** The states that a move starts from. */
export function origins(move: Move): TaskStatus[] {
  return TRANSITIONS.filter((row) => row.move === move).map((row) => row.from);
}

/** The state diagram in Mermaid, drawn from the table. */
export function drawTransitions(): string {
  const rows = TRANSITIONS.map((row) => `  ${row.from} --> ${row.to}: ${row.move} (${row.by})`);
  return ['stateDiagram-v2', '  [*] --> working: start (client)', ...rows].join('\n');
}
