/**
 * The name that a client gives itself (MCP `Implementation.name`): the key of the operator's rules and of what is known
 * of hosts, and a decoration of pages. Self-reported, so it proves nothing. Pure.
 */
import { isObject } from './json-rpc.ts';

const LONGEST_NAME = 64;

/** `mcp-remote`, a bridge for hosts that speak over pipes alone, adds itself to the name of the host behind it. */
const BRIDGE = / \(via mcp-remote [^()]*\)$/;

/** Reads `clientInfo`: the host's own name, or null when it gives none. */
export function clientName(info: unknown): string | null {
  const name = isObject(info) ? info['name'] : undefined;
  if (typeof name !== 'string' || name === '') return null;
  return name.replace(BRIDGE, '').slice(0, LONGEST_NAME);
}
