/** Sameness of calls (D7, R24). Pure but for a digest. */
import { createHash } from 'node:crypto';

/** JSON with object members in code-unit order, so that equal arguments give equal text (as RFC 8785 orders them). */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

/** SHA-256 of the canonical arguments, base64url. */
export function argumentsDigest(args: unknown): string {
  return createHash('sha256').update(canonicalJson(args)).digest('base64url');
}

/** How a call is recognised when it is sent again. The scope is always owner + client + tool (R24). */
export interface IdempotencyKey {
  /** `explicit`: named by the client. `implicit`: made from the arguments, for faces that carry no handle. */
  readonly kind: 'explicit' | 'implicit';
  readonly key: string;
}

/** Longest explicit key, in characters. */
export const LONGEST_KEY = 256;

/** The key of a call that named none, on a face without a handle. */
export function implicitKey(args: unknown): IdempotencyKey {
  return { kind: 'implicit', key: `implicit:${argumentsDigest(args)}` };
}

/** The key that a client named, or undefined when it is not a usable key. */
export function explicitKey(value: unknown): IdempotencyKey | undefined {
  if (typeof value !== 'string' || value.length === 0 || value.length > LONGEST_KEY) return undefined;
  return { kind: 'explicit', key: `explicit:${value}` };
}
