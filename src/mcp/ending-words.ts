/**
 * How a failed task is told in words: why it ended, and what to do about it. Many clients show a model or a person the
 * message of an error and nothing of its `data`, so the advice is in the message. Pure.
 */
import type { TaskErrorReason } from '../errors.ts';
import type { TaskSnapshot } from '../engine/tasks.ts';
import type { Outcome } from '../store/records.ts';

/** What to do about an ending. */
export const ADVICE: Record<TaskErrorReason | 'job_failed', string> = {
  authorization_declined: 'Start the task again to be asked again.',
  deadline_passed: 'Start the task again for a new link.',
  elicitation_unsupported:
    'Use a client that supports URL mode elicitation, or ask the operator to allow links as text for this one.',
  access_denied: 'Start the task again and allow the access.',
  host_gone: 'Start the task again, and keep polling it.',
  provider_misconfigured: 'Only the operator of this server can mend it.',
  insufficient_scope: 'Start the task again and allow every permission that is asked for.',
  interaction_forbidden: 'Start it without that rule, or sign in first.',
  resource_refused: 'Check that the account may read this resource.',
  job_unknown: 'Only the operator of this server can mend it.',
  task_cancelled: 'Start it again if it is still wanted.',
  too_many_tasks: 'Wait for other tasks to end, then start it again.',
  job_failed: 'Start it again; if it fails again, tell the operator of this server.',
};

/** The words for a task that ended with an error. What the job itself answered stays as it is. */
export function endingWords(
  { statusMessage }: Pick<TaskSnapshot, 'statusMessage'>,
  { message, reason }: Extract<Outcome, { kind: 'error' }>,
): string {
  if (reason === 'protocol') return message;
  // Words that were found for this very task carry their advice.
  if (statusMessage !== null && statusMessage !== message) return statusMessage;
  return `${message} ${ADVICE[reason]}`;
}
