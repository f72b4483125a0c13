/**
 * The text in which an operator writes vault keys, read without any I/O.
 *
 * One entry a line, or separated by commas; the first is the current key, the others only open what was sealed
 * before. An entry is `kid:KEY` or a bare `KEY`, where KEY is base64 or base64url (RFC 4648) of 32 to 1,024 random
 * bytes. A bare key gets its kid from a hash of itself, so the same text always has the same kid. In a file, text
 * after `#` is a comment.
 *
 * Problems name the setting and the number of the entry. They never repeat any part of it: an entry with its halves
 * swapped carries the key where the kid should be.
 */
import { createHash } from 'node:crypto';
import { Refusal } from '../errors.ts';

/** A key as the operator wrote it: its id and its bytes. The bytes are wiped once they are imported. */
export interface KeyEntry {
  readonly kid: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Bytes that a new key has, and the fewest that any key may have: as many as HKDF-SHA256 puts out. */
export const KEY_BYTES = 32;

const MOST_KEY_BYTES = 1024;
const MOST_ENTRIES = 64;
const MOST_TEXT = 256 * 1024;
const KID = /^[A-Za-z0-9_-]{1,32}$/;
// By chance, 32 random bytes have fewer than ten distinct values less than once in 10^30 keys; a placeholder has.
const FEWEST_DISTINCT_BYTES = 10;

/**
 * Reads the text of a keyring. The first entry is the current key.
 *
 * @param setting what the text came from, named in every problem: a variable or a file path.
 * @throws {Refusal} `configuration_invalid` with facts `setting` and, where one is to blame, `entry` (from 1).
 */
export function parseKeyText(text: string, setting: string): readonly KeyEntry[] {
  if (text.length > MOST_TEXT) throw problem(setting, 'is too long to be a list of keys');
  const items = text
    .replaceAll(/#[^\n]*/g, '')
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
  if (items.length === 0) throw problem(setting, 'holds no key');
  if (items.length > MOST_ENTRIES) throw problem(setting, `holds more than ${MOST_ENTRIES} keys`);

  const entries: KeyEntry[] = [];
  for (const [index, item] of items.entries()) {
    const entry = parseEntry(item, setting, index + 1);
    const earlier = entries.findIndex(({ kid }) => kid === entry.kid);
    if (earlier >= 0) throw problem(setting, `has the same kid as entry ${earlier + 1}`, index + 1);
    entries.push(entry);
  }
  return entries;
}

/** Whether a value has the form of a kid. */
export function isKid(value: unknown): value is string {
  return typeof value === 'string' && KID.test(value);
}

/** The kid of a key that the operator did not name: eight hex digits of a hash that is used for nothing else. */
export function kidOf(bytes: Uint8Array): string {
  const hash = createHash('sha256').update('keyturn/v1/kid\n').update(bytes).digest('hex');
  return `k${hash.slice(0, 8)}`;
}

function parseEntry(item: string, setting: string, entry: number): KeyEntry {
  const colon = item.indexOf(':');
  const bytes = decodeKey(item.slice(colon + 1).trim());
  if (bytes === undefined) throw problem(setting, 'is not base64 or base64url', entry);
  if (bytes.length < KEY_BYTES) {
    throw problem(setting, `is too short: a key has at least ${KEY_BYTES} bytes`, entry);
  }
  if (bytes.length > MOST_KEY_BYTES) {
    throw problem(setting, `is too long: a key has at most ${MOST_KEY_BYTES} bytes`, entry);
  }
  if (new Set(bytes).size < FEWEST_DISTINCT_BYTES) {
    throw problem(setting, 'is a placeholder, not random bytes', entry);
  }
  const kid = colon < 0 ? kidOf(bytes) : item.slice(0, colon).trim();
  if (!isKid(kid)) {
    throw problem(setting, 'has a kid that is not 1 to 32 letters, digits, "-" or "_"', entry);
  }
  return { kid, bytes };
}

/** Strict: a character outside the alphabet or stray last bits mean a mangled paste, not another key. */
function decodeKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  const unpadded = text
    .replace(/={1,2}$/, '')
    .replaceAll('+', '-')
    .replaceAll('/', '_');
  const decoded = Buffer.from(unpadded, 'base64url');
  if (unpadded === '' || decoded.toString('base64url') !== unpadded) return undefined;
  const bytes = new Uint8Array(decoded);
  decoded.fill(0);
  return bytes;
}

function problem(setting: string, what: string, entry?: number): Refusal {
  return entry === undefined
    ? new Refusal('configuration_invalid', { message: `${setting} ${what}.`, facts: { setting } })
    : new Refusal('configuration_invalid', {
        message: `${setting}: entry ${entry} ${what}.`,
        facts: { setting, entry },
      });
}
