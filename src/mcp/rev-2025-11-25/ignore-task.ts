/**
 * A receiver that does not declare tasks processes a call as if it had no `task` (MCP 2025-11-25,
 * basic/utilities/tasks, "Task Support and Handling"); the SDK refuses it instead, so it never sees the field. Pure.
 */
import { isObject } from '../json-rpc.ts';
import type { Client } from './client.ts';
import { REVISIONS } from './revisions.ts';

/** The message, or each message of a batch, as the revision of the session knows it. */
export function ignoreTask(client: Client, body: unknown): unknown {
  if (REVISIONS[client.revision].tasks) return body;
  if (Array.isArray(body)) return body.map((message: unknown) => ignoreTask(client, message));
  if (!isObject(body) || !isObject(body['params'])) return body;
  const { task: _ignored, ...params } = body['params'];
  return { ...body, params };
}
