/**
 * When a link counts as done with on the wire (MCP 2025-11-25, client/elicitation, "Completion Notifications"): its
 * sign-in came to an outcome. A wait that ran out or was called off has none, and a client that repeats its call at
 * the notification would only start over. Best effort.
 */
import type { TaskSnapshot } from '../../engine/tasks.ts';
import type { Message } from './call.ts';
import type { Given } from './given.ts';
import { relatedTask } from './wire-task.ts';

/** Reasons that end a task without any sign-in. */
const CALLED_OFF: ReadonlySet<string> = new Set(['authorization_declined', 'deadline_passed', 'host_gone']);

function calledOff(task: TaskSnapshot): boolean {
  if (task.status === 'cancelled') return true;
  return task.outcome?.kind === 'error' && CALLED_OFF.has(task.outcome.reason);
}

/**
 * Notifications that are due to a session for a task as it is now; each is returned once.
 *
 * @param related whether the client knows the task, so that the notifications name it.
 */
export function completions(given: Given, task: TaskSnapshot, related: boolean): Message[] {
  const done = given.takeDone(task.taskId, task.asked);
  if (calledOff(task)) return [];
  return done.map((elicitationId) => ({
    method: 'notifications/elicitation/complete',
    params: { elicitationId, ...(related ? { _meta: relatedTask(task.taskId) } : {}) },
  }));
}
