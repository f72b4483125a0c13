/**
 * Headers that mirror the body for intermediaries (transports/streamable-http, "Server Validation"; tasks, "Routing
 * Headers"). Whoever routes by a header and whoever acts on the body must see the same request. Pure.
 */
import { decodeHeaderValue } from '../header-value.ts';
import type { JsonObject, WireError } from '../json-rpc.ts';

/** The field of the body that `Mcp-Name` mirrors, by method. */
const NAMED: Readonly<Record<string, 'name' | 'taskId'>> = {
  'tools/call': 'name',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

type Headers = { readonly [name: string]: string | string[] | undefined };

/** What is mirrored. */
export interface Mirrored {
  readonly version: string;
  readonly method: string;
  readonly params: JsonObject;
}

/** A header says something else than the body. Checked before the version is judged. */
export function headerMismatch(headers: Headers, body: Mirrored): WireError | undefined {
  const version = headers['mcp-protocol-version'];
  if (version !== undefined && !says(version, body.version)) {
    return mismatch('MCP-Protocol-Version does not match the version in _meta.');
  }
  const method = headers['mcp-method'];
  if (method !== undefined && !says(method, body.method)) {
    return mismatch('Mcp-Method does not match the method of the body.');
  }
  return undefined;
}

/** A required header is missing, or the name differs. Checked once the version is known to be served. */
export function headerMissing(headers: Headers, body: Mirrored): WireError | undefined {
  if (headers['mcp-protocol-version'] === undefined) return mismatch('MCP-Protocol-Version is missing.');
  if (headers['mcp-method'] === undefined) return mismatch('Mcp-Method is missing.');
  const field = Object.hasOwn(NAMED, body.method) ? NAMED[body.method] : undefined;
  if (field === undefined) return undefined;
  const value = body.params[field];
  // Nothing to compare with: the parameters themselves are refused later.
  if (typeof value !== 'string') return undefined;
  const name = headers['mcp-name'];
  if (name === undefined) return mismatch(`Mcp-Name is missing; it has to be params.${field}.`);
  const decoded = typeof name === 'string' ? decodeHeaderValue(name) : undefined;
  if (decoded === undefined) return mismatch('Mcp-Name is not validly encoded.');
  return decoded === value ? undefined : mismatch(`Mcp-Name does not match params.${field}.`);
}

function says(header: string | string[], value: string): boolean {
  return typeof header === 'string' && header.trim() === value;
}

/** The error of a header that does not fit. */
export function mismatch(message: string): WireError {
  return { status: 400, code: -32020, message: `Header mismatch: ${message}` };
}
