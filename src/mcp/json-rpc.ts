/**
 * JSON-RPC 2.0 messages as MCP restricts them (2026-07-28, basic/index, "Messages"): one message a request, ids are
 * texts or integers and never null. Reads shapes and writes answers; knows no method. Pure.
 */

/** An id, echoed with its own type. */
export type RpcId = string | number;

/** Any JSON object. */
export type JsonObject = { readonly [name: string]: unknown };

/** A message that was posted. */
export type RpcMessage =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  /** Answers of a client to a server's request, on revisions that know such requests. */
  | { readonly kind: 'response' };

/** What is wrong with a body, and the id to echo where one could be read. */
export interface Malformed {
  readonly kind: 'malformed';
  readonly message: string;
  readonly id?: RpcId;
}

/** The codes of JSON-RPC itself. */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/** An error to be answered, with the HTTP status that goes with it. */
export interface WireError {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly data?: JsonObject;
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isId(value: unknown): value is RpcId {
  return typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value));
}

/** Reads a parsed body. */
export function readMessage(body: unknown): RpcMessage | Malformed {
  if (Array.isArray(body)) return malformed('Batches are not supported: send one message a request.');
  if (!isObject(body)) return malformed('The body must be a JSON-RPC message.');
  const { id, method, params } = body;
  const echo = isId(id) ? { id } : {};
  if (body['jsonrpc'] !== '2.0') return malformed('jsonrpc: must be "2.0".', echo);
  if (method === undefined && (Object.hasOwn(body, 'result') || Object.hasOwn(body, 'error'))) {
    return { kind: 'response' };
  }
  if (typeof method !== 'string' || method === '') return malformed('method: must be a text.', echo);
  if (params !== undefined && !isObject(params)) return malformed('params: must be an object.', echo);
  const given = params ?? {};
  if (!Object.hasOwn(body, 'id')) return { kind: 'notification', method, params: given };
  if (!isId(id)) return malformed('id: must be a text or an integer.');
  return { kind: 'request', id, method, params: given };
}

function malformed(message: string, echo: { id?: RpcId } = {}): Malformed {
  return { kind: 'malformed', message, ...echo };
}

/** The text of a result answer. */
export function resultText(id: RpcId, result: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** The same, for a result that is a JSON text already. */
export function resultTextOf(id: RpcId, result: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
}

/** The text of an error answer. Without an id when none could be read (basic/index, "Error Responses"). */
export function errorText(id: RpcId | undefined, { code, message, data }: WireError): string {
  const error = { code, message, ...(data === undefined ? {} : { data }) };
  return JSON.stringify(id === undefined ? { jsonrpc: '2.0', error } : { jsonrpc: '2.0', id, error });
}
