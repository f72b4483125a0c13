/**
 * JSON-RPC errors as handlers of this face throw them through the SDK, which sends `code`, `message` and `data` as they
 * are. What is not a refusal shows nothing of itself (D15).
 */
import { isRefusal, type Reason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, type JsonObject } from '../json-rpc.ts';
import { BUG, wireError } from '../wire-error.ts';

/** Only in these revisions: the request waits for links to be used (MCP 2025-11-25, client/elicitation). */
export const URL_ELICITATION_REQUIRED = -32042;

/** Thrown by handlers. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: number;
  readonly data: JsonObject | undefined;

  constructor(code: number, message: string, data?: JsonObject) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The answer for a task that is unknown, foreign or forgotten: always the same (D13). */
export function taskUnknown(): RpcError {
  return new RpcError(INVALID_PARAMS, 'Task not found', { reason: 'task_unknown' satisfies Reason });
}

/** The end of a wait that nobody waits for any more; never reaches the wire. */
export function waitOver(): RpcError {
  return new RpcError(INTERNAL_ERROR, 'The wait was ended by the client.');
}

/** What a thrown value looks like on the wire. */
export function toRpcError(error: unknown, log: Log): RpcError {
  if (error instanceof RpcError) return error;
  const wire = isRefusal(error) ? wireError(error) : BUG;
  if (wire.status >= 500) log.error('mcp.failed', { error });
  return new RpcError(wire.code, wire.message, wire.data);
}
