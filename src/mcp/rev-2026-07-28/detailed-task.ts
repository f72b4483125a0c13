/**
 * A task on the wire of the tasks extension. The same text for `tasks/get` and `notifications/tasks`; what a request's
 * client cannot show is left out for that request alone (D9). Pure.
 */
import type { ElicitationModes } from '../../elicitation/capability.ts';
import type { InputRequest, TaskSnapshot } from '../../engine/tasks.ts';
import { linkLines } from '../delivery.ts';
import { isObject, type JsonObject } from '../json-rpc.ts';
import { outcomeError } from '../wire-error.ts';

/** What can be shown to the person of a request. */
export interface Reach extends ElicitationModes {
  /** Links may go as text, where the operator allows it and URL mode is not declared (D9). */
  readonly linksAsText: boolean;
}

/** The fields that every task has: what `CreateTaskResult` carries. */
export function taskFields(task: TaskSnapshot): JsonObject {
  return {
    taskId: task.taskId,
    status: task.status,
    ...(task.statusMessage === null ? {} : { statusMessage: task.statusMessage }),
    createdAt: new Date(task.createdAtMs).toISOString(),
    lastUpdatedAt: new Date(task.updatedAtMs).toISOString(),
    ttlMs: Math.ceil(task.ttlMs),
    pollIntervalMs: task.pollIntervalMs,
  };
}

/** A task with what goes with its status, for a client of this reach. */
export function detailedTask(task: TaskSnapshot, reach: Reach): JsonObject {
  const fields = taskFields(task);
  switch (task.status) {
    case 'working':
    case 'cancelled':
      return fields;
    case 'input_required': {
      const shown = task.inputs.filter((input) => reach[input.mode]);
      const hidden = task.inputs.filter((input) => !reach[input.mode]);
      return {
        ...fields,
        ...(hidden.length === 0 ? {} : { statusMessage: elsewhere(task, hidden, reach) }),
        inputRequests: inputRequests(shown),
      };
    }
    case 'completed':
      return {
        ...fields,
        result: task.outcome?.kind === 'result' ? toolResult(task.outcome.result) : { content: [] },
      };
    case 'failed': {
      if (task.outcome?.kind !== 'error') {
        return { ...fields, error: { code: -32603, message: 'Internal error' } };
      }
      const error = outcomeError(task, task.outcome);
      return { ...fields, statusMessage: error.message, error };
    }
  }
}

/**
 * Open questions by key, as a client is asked them (client/elicitation). Never omitted, even when empty (D4).
 *
 * @param problems what was wrong with the last answer, by key.
 */
export function inputRequests(
  inputs: readonly InputRequest[],
  problems: Readonly<Record<string, readonly string[]>> = {},
): JsonObject {
  return Object.fromEntries(
    inputs.map((input) => [
      input.key,
      {
        method: 'elicitation/create',
        params:
          input.mode === 'url'
            ? { mode: 'url', message: input.message, url: input.url }
            : {
                mode: 'form',
                message: withProblems(input.message, problems[input.key]),
                requestedSchema: input.schema,
              },
      },
    ]),
  );
}

/** A question with what was wrong with the last answer to it. */
export function withProblems(message: string, problems: readonly string[] = []): string {
  return problems.length === 0 ? message : `${message} (${problems.join('; ')})`;
}

/** A stored result as `CallToolResult`: `content` is required on the wire. */
export function toolResult(result: unknown): JsonObject {
  const fields = isObject(result) ? result : {};
  return Array.isArray(fields['content']) ? fields : { content: [], ...fields };
}

/** What to do about questions that this client cannot show. */
function elsewhere(task: TaskSnapshot, hidden: readonly InputRequest[], reach: Reach): string {
  const links = hidden.filter((input) => input.mode === 'url');
  if (reach.linksAsText && links.length > 0) return linkLines(links);
  const needs = new Set(hidden.map((input) => (input.mode === 'url' ? 'links' : 'forms')));
  const told = task.statusMessage === null ? '' : `${task.statusMessage} `;
  return `${told}This client has not declared that it can show ${[...needs].join(' and ')}: continue in one that does.`;
}
