/**
 * Small values that leave the server sealed and come back: cookies, the request state of multi round-trips, and code
 * verifiers that wait in the ledger.
 *
 * A sealed value is text of `A–Z a–z 0–9 - _ .`, so it needs no escaping in a cookie or URL. It is bound to its purpose by
 * its key and to its context by the authentication tag; the context itself does not travel. What does not open, for
 * whatever reason, is simply not a value: the reader gets `undefined` and no hint for guessing. Taking a value only once
 * is not done here; that needs the ledger.
 */
import { randomBytes } from 'node:crypto';
import { Refusal } from '../errors.ts';
import { decryptJwe, encryptJwe, peekHeader } from './jwe.ts';
import type { Keyring, SealPurpose } from './keyring.ts';

/** What a sealed value is for. */
export type ValuePurpose = Exclude<SealPurpose, 'vault'>;

/** What can be sealed. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/**
 * What a value is bound to, in a fixed order; for example owner, client and tool. All of it must be the same, in the same
 * order, for the value to open.
 */
export type ValueContext = readonly string[];

/** Most characters of a sealed value. A cookie has 4,096 bytes with its name and attributes (RFC 6265, 6.1). */
export const MOST_SEALED_LENGTH: Readonly<Record<ValuePurpose, number>> = {
  cookies: 3_800,
  'request-state': 16_384,
  attempts: 2_048,
};

const TYPE = 'keyturn-value';

/**
 * Seals a value under the current key.
 *
 * @param options.expiresAtMs from this instant on the value does not open (D1).
 * @throws {Refusal} `value_too_large` with facts `length` and `limit`, in characters of the sealed text.
 */
export async function sealValue(
  keyring: Keyring,
  purpose: ValuePurpose,
  payload: Json,
  options: { expiresAtMs: number; context: ValueContext },
): Promise<string> {
  if (!Number.isSafeInteger(options.expiresAtMs)) throw new TypeError('expiresAtMs is not a whole number');
  const kid = keyring.currentKid;
  const slt = randomBytes(16).toString('base64url');
  const plaintext = new TextEncoder().encode(JSON.stringify({ exp: options.expiresAtMs, val: payload }));
  const key = await keyring.sealKey(kid, purpose, slt);
  const text = await encryptJwe(plaintext, key, { typ: TYPE, kid, slt }, encodeContext(options.context));
  const limit = MOST_SEALED_LENGTH[purpose];
  if (text.length > limit) {
    throw new Refusal('value_too_large', { facts: { length: text.length, limit } });
  }
  return text;
}

/**
 * Opens a value that was sealed for this purpose and context, under the current or a previous key.
 *
 * @returns `undefined` for everything else: forged, damaged, expired, made for another purpose or context, or sealed
 *   under a key that is gone. Never throws because of `text`.
 */
export async function openValue(
  keyring: Keyring,
  purpose: ValuePurpose,
  text: string,
  options: { nowMs: number; context: ValueContext },
): Promise<Json | undefined> {
  if (text.length > MOST_SEALED_LENGTH[purpose]) return undefined;
  const { kid, slt } = peekHeader(text) ?? {};
  if (typeof kid !== 'string' || typeof slt !== 'string' || !keyring.has(kid)) return undefined;
  const key = await keyring.sealKey(kid, purpose, slt);
  const opened = await decryptJwe(text, key, { typ: TYPE, kid, slt }, encodeContext(options.context));
  if ('problem' in opened) return undefined;
  // Authentic from here on, so the shape is the one that was sealed.
  const { exp, val } = JSON.parse(Buffer.from(opened.plaintext).toString()) as { exp: number; val: Json };
  return options.nowMs < exp ? val : undefined;
}

function encodeContext(context: ValueContext): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(context));
}
