/**
 * The handle in `<publicUrl>/connect/<handle>` (R13): an HMAC of the elicitation's id, so that any node can make the
 * same link again while the ledger keeps nothing that opens it. A handle is no credential: the page asks who is there.
 */
import { createHash } from 'node:crypto';
import type { Keyring } from './keyring.ts';

/**
 * The handle of an elicitation.
 *
 * @param kid key that the handle was first made with, kept with the elicitation; the current key for a new one.
 * @returns `handle`: HMAC-SHA256, 43 characters of base64url.
 * @throws {Refusal} `vault_key_missing` with fact `kid`.
 */
export async function linkHandle(
  keyring: Keyring,
  elicitationId: string,
  kid: string = keyring.currentKid,
): Promise<{ readonly handle: string; readonly kid: string }> {
  if (elicitationId === '') throw new TypeError('elicitationId is empty');
  const key = await keyring.macKey(kid, 'links');
  const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(elicitationId));
  return { handle: Buffer.from(mac).toString('base64url'), kid };
}

/** What the ledger keeps of a handle and looks it up by: SHA-256, base64url. Any text may be given. */
export function hashHandle(handle: string): string {
  return createHash('sha256').update(handle).digest('base64url');
}
