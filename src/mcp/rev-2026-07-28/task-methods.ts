/**
 * `tasks/get`, `tasks/update`, `tasks/cancel`: the short path. A poll costs a few checks, at most one read and one text;
 * no server object is made for it. The caller has been verified and the extension declared before anything is looked up.
 */
import { Refusal } from '../../errors.ts';
import type { Caller } from '../../engine/caller.ts';
import type { TaskSnapshot, Tasks } from '../../engine/tasks.ts';
import { isObject, type JsonObject } from '../json-rpc.ts';

/** The methods of the extension. */
export const TASK_METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;

/** One of them. */
export type TaskMethod = (typeof TASK_METHODS)[number];

/** Longest id that is looked up. */
const LONGEST_ID = 256;
/** Most answers of one update. */
const MOST_ANSWERS = 100;

/** Whether a method is one of the extension's. */
export function isTaskMethod(method: string): method is TaskMethod {
  return (TASK_METHODS as readonly string[]).includes(method);
}

/** The task that a `tasks/get` asks for. @throws Refusal `task_unknown`, `arguments_invalid`. */
export async function readTask(tasks: Tasks, caller: Caller, params: JsonObject): Promise<TaskSnapshot> {
  const task = await tasks.read(caller, readTaskId(params));
  if (task === undefined) throw new Refusal('task_unknown');
  return task;
}

/**
 * Answers a method of the extension that changes a task.
 *
 * @returns the fields of its result, without `resultType`.
 * @throws Refusal `task_unknown`, the same for unknown, foreign and forgotten ids; `arguments_invalid`.
 */
export async function taskMethod(
  tasks: Tasks,
  method: Exclude<TaskMethod, 'tasks/get'>,
  call: { readonly caller: Caller; readonly params: JsonObject },
): Promise<JsonObject> {
  const { caller, params } = call;
  const taskId = readTaskId(params);
  switch (method) {
    case 'tasks/update': {
      const answers = readInputResponses(params['inputResponses']);
      // A content that does not fit leaves its question open; the task's message says why.
      const taken = await tasks.answer(caller, taskId, answers);
      if (taken === undefined) throw new Refusal('task_unknown');
      return {};
    }
    case 'tasks/cancel': {
      const cancelled = await tasks.cancel(caller, taskId);
      if (cancelled === undefined) throw new Refusal('task_unknown');
      return {};
    }
  }
}

function readTaskId({ taskId }: JsonObject): string {
  if (typeof taskId !== 'string') {
    throw new Refusal('arguments_invalid', { message: 'params.taskId: must be a text' });
  }
  if (taskId.length > LONGEST_ID) throw new Refusal('task_unknown');
  return taskId;
}

/**
 * Reads `inputResponses`. An answer of an odd shape counts as no answer to its question.
 *
 * @throws Refusal `arguments_invalid`.
 */
export function readInputResponses(
  given: unknown,
): ReadonlyMap<string, { action: unknown; content: unknown }> {
  if (!isObject(given)) {
    throw new Refusal('arguments_invalid', { message: 'params.inputResponses: must be an object' });
  }
  const entries = Object.entries(given);
  if (entries.length > MOST_ANSWERS) {
    throw new Refusal('arguments_invalid', {
      message: `params.inputResponses: must have at most ${MOST_ANSWERS} members`,
    });
  }
  return new Map(
    entries.map(([key, response]) => [
      key,
      isObject(response)
        ? { action: response['action'], content: response['content'] }
        : { action: undefined, content: undefined },
    ]),
  );
}
