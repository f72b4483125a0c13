/**
 * Ids of our `elicitation/create` requests. An id names its task and its question, so that the answer finds them on
 * any node; it is unique by its random end, since a question may be asked again (MCP 2025-11-25, basic/index,
 * "Requests"). It proves nothing: an answer counts for the caller's own tasks only. Pure but for randomness.
 */
import { randomBytes } from 'node:crypto';

const ASK = 'ask';
const FIRST = 'first';

/** An id for a question of a task. */
export function newAskId(taskId: string, key: string): string {
  return [
    ASK,
    encodeURIComponent(taskId),
    encodeURIComponent(key),
    randomBytes(9).toString('base64url'),
  ].join('/');
}

/** An id for a question that a call asks before there is a task. */
export function newFirstId(): string {
  return [FIRST, randomBytes(9).toString('base64url')].join('/');
}

/** What an id of a response refers to; undefined when it is none of ours. */
export type Asked =
  { readonly kind: 'task'; readonly taskId: string; readonly key: string } | { readonly kind: 'first' };

/** Reads an id. */
export function readAskId(id: unknown): Asked | undefined {
  if (typeof id !== 'string' || id.length > 1_024) return undefined;
  const [kind, taskId, key, end, ...more] = id.split('/');
  if (kind === FIRST && taskId !== undefined && key === undefined) return { kind: 'first' };
  if (kind !== ASK || taskId === undefined || key === undefined || end === undefined || more.length > 0) {
    return undefined;
  }
  try {
    return { kind: 'task', taskId: decodeURIComponent(taskId), key: decodeURIComponent(key) };
  } catch {
    return undefined;
  }
}
