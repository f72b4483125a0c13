/**
 * The headers that a client of 2026-07-28 puts on a message over HTTP, worked out from the message (MCP 2026-07-28,
 * transports/streamable-http, "Request Headers"): for messages that come without any, over a pipe. Pure.
 */
import type { Catalogue } from './catalogue.ts';
import { VERSION_KEY } from './era.ts';
import { encodeHeaderValue } from './header-value.ts';
import { isObject, type JsonObject } from './json-rpc.ts';

/** Headers of a request. */
export function mirrorHeaders(
  catalogue: Pick<Catalogue, 'get'>,
  message: { readonly method: string; readonly params: JsonObject },
): Record<string, string> {
  const { method, params } = message;
  const meta = params['_meta'];
  const version = isObject(meta) ? meta[VERSION_KEY] : undefined;
  const name = method.startsWith('tasks/') ? params['taskId'] : params['name'];
  return {
    'mcp-method': encodeHeaderValue(method),
    ...(typeof version === 'string' ? { 'mcp-protocol-version': encodeHeaderValue(version) } : {}),
    ...(typeof name === 'string' ? { 'mcp-name': encodeHeaderValue(name) } : {}),
    ...(method === 'tools/call' && typeof name === 'string' ? paramHeaders(catalogue, name, params) : {}),
  };
}

function paramHeaders(
  catalogue: Pick<Catalogue, 'get'>,
  name: string,
  params: JsonObject,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of catalogue.get(name)?.paramHeaders ?? []) {
    let value: unknown = params['arguments'];
    for (const step of path) value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      headers[header] = encodeHeaderValue(String(value));
    }
  }
  return headers;
}
