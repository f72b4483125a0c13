/**
 * JSON-RPC errors as this face sends them, and the one place where a refusal becomes one. Nothing that is not a
 * refusal shows its text: it is a bug, logged, and leaves as −32603 (D15).
 */
import { isRefusal, REASONS, TASK_ERROR_CODES, type Reason, type Refusal } from '../../errors.ts';
import type { Log } from '../../log.ts';

/** Codes of JSON-RPC 2.0, section 5.1, and of MCP 2025-11-25, schema, "Error codes". */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
export const URL_ELICITATION_REQUIRED = -32042;

/** Thrown through the SDK, which sends `code`, `message` and `data` as they are. */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly code: number;
  readonly data: { readonly [name: string]: unknown } | undefined;

  constructor(code: number, message: string, data?: { readonly [name: string]: unknown }) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The answer for a task that is unknown, foreign or forgotten: always the same (D13). */
export function taskUnknown(): WireError {
  return new WireError(INVALID_PARAMS, 'Task not found', { reason: 'task_unknown' satisfies Reason });
}

/** The end of a wait that nobody waits for any more; never reaches the wire. */
export function waitOver(): WireError {
  return new WireError(INTERNAL_ERROR, 'The wait was ended by the client.');
}

/** Reasons that say that the request itself is wrong. */
const REQUEST_REASONS: ReadonlySet<Reason> = new Set([
  'task_unknown',
  'tool_unknown',
  'arguments_invalid',
  'idempotency_conflict',
  'request_state_invalid',
]);

/** What a thrown value looks like on the wire. */
export function toWireError(error: unknown, log: Log): WireError {
  if (error instanceof WireError) return error;
  if (isRefusal(error)) return refused(error, log);
  log.error('mcp.failed', { error });
  return new WireError(INTERNAL_ERROR, 'Internal error');
}

function refused(refusal: Refusal, log: Log): WireError {
  const { reason, facts } = refusal;
  if (Object.hasOwn(TASK_ERROR_CODES, reason)) {
    const code = TASK_ERROR_CODES[reason as keyof typeof TASK_ERROR_CODES];
    return new WireError(code, REASONS[reason], { reason, ...facts });
  }
  if (REQUEST_REASONS.has(reason)) {
    return new WireError(INVALID_PARAMS, refusal.message, { reason, ...facts });
  }
  log.error('mcp.refused', { error: refusal });
  const message = reason === 'store_unavailable' ? REASONS[reason] : 'Internal error';
  return new WireError(INTERNAL_ERROR, message, { reason });
}
