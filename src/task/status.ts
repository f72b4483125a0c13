/**
 * The states of a task. Their names are those of MCP (tasks extension, "Task Status").
 *
 * `working`: work can go on. Entered at creation and when the last thing a person was asked for has arrived; left by
 *   a stop, an end or a cancel. Within it a task is *due* (a worker may claim it at `dueAtMs`), *leased* (a worker
 *   holds it until `leaseUntilMs`) or both, when a lease has lapsed. A crash leaves the lease to lapse; the sweeper
 *   makes the task due again and the next worker starts from the checkpoint under a new term.
 * `input_required`: a person is needed. Entered by a stop, which releases the worker in the same write; left when
 *   everything asked for is there before the deadline, or by an end or a cancel. Nothing but rows exists for it, so a
 *   crash does nothing to it. At the deadline the sweeper ends it as `failed`; until it does, reads say so already.
 * `completed`: the job gave a result. Entered by the holder of the current term. Terminal.
 * `failed`: ended by a refusal with a stable code, or by a protocol error of the job. Terminal.
 * `cancelled`: the client asked for it. Terminal. Work that still runs has lost its term: its writes touch no row.
 *
 * A terminal task never changes again; it is kept until its `ttlMs` has run out and is then swept.
 */
export const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;

/** One of the states above. */
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** States that no task leaves. */
export const TERMINAL_STATUSES = [
  'completed',
  'failed',
  'cancelled',
] as const satisfies readonly TaskStatus[];

/** A state that no task leaves. */
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

/** Whether a task in this state has ended. */
export function isTerminal(status: TaskStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly TaskStatus[]).includes(status);
}
