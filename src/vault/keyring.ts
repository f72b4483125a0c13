/**
 * The keys of this server: one current key, any number of previous ones, each known by its kid.
 *
 * A root key never meets data. It is imported as a non-extractable HKDF key (RFC 5869, SHA-256), and one key for each
 * purpose is derived from it, so that a cookie can never be read as a vault record (R21). Nothing here gives key
 * bytes back; printing a keyring shows kids.
 *
 * Rotation without downtime, over many nodes: put the new key *last* on every node, then first on every node, then
 * re-wrap, and remove the old one once `checkRetired` no longer asks for it.
 */
import { randomBytes, type webcrypto } from 'node:crypto';
import { inspect } from 'node:util';
import { Refusal } from '../errors.ts';
import { Secret } from '../secret.ts';
import { KEY_BYTES, kidOf, type KeyEntry } from './key-text.ts';

type CryptoKey = webcrypto.CryptoKey;

/** What a derived key encrypts. */
export type SealPurpose = 'vault' | 'cookies' | 'request-state' | 'attempts';

/** What a derived key authenticates or hides by HMAC: link handles, and owners within vault records. */
export type MacPurpose = 'links' | 'owners';

/** Derives keys; see the file's header for what it refuses. */
export class Keyring {
  /** The kid under which everything new is sealed. */
  readonly currentKid: string;
  readonly #roots: ReadonlyMap<string, CryptoKey>;
  readonly #macKeys = new Map<string, Promise<CryptoKey>>();

  /** Call `openKeyring` instead: it imports the roots so that they cannot be read back. */
  constructor(currentKid: string, roots: ReadonlyMap<string, CryptoKey>) {
    this.currentKid = currentKid;
    this.#roots = roots;
    Object.freeze(this);
  }

  /** All kids, the current one first. */
  get kids(): readonly string[] {
    return [...this.#roots.keys()];
  }

  has(kid: string): boolean {
    return this.#roots.has(kid);
  }

  /**
   * The A256GCM key for one message: no two salts share a key, so the bound on messages under random 96-bit IVs (NIST
   * SP 800-38D, 8.3) is never reached, however many records there are.
   *
   * @param salt differs for every message: a record key or random bytes.
   * @throws {Refusal} `vault_key_missing` with fact `kid`.
   */
  sealKey(kid: string, purpose: SealPurpose, salt: string): Promise<CryptoKey> {
    return this.#derive(kid, purpose, salt, { name: 'AES-GCM', length: 256 }, ['encrypt', 'decrypt']);
  }

  /**
   * The HMAC-SHA256 key of a purpose.
   *
   * @throws {Refusal} `vault_key_missing` with fact `kid`.
   */
  macKey(kid: string, purpose: MacPurpose): Promise<CryptoKey> {
    const name = `${purpose}:${kid}`;
    let key = this.#macKeys.get(name);
    if (key === undefined) {
      key = this.#derive(kid, purpose, '', { name: 'HMAC', hash: 'SHA-256', length: 256 }, ['sign']);
      // A missing kid is not remembered: kids come from outside, and the map must not grow with them.
      if (this.has(kid)) this.#macKeys.set(name, key);
    }
    return key;
  }

  /**
   * Stops the start when a kid that the ledger still refers to is not configured (R21).
   *
   * @param referenced every kid that a connection, attempt or open link of the ledger names.
   * @throws {Refusal} `vault_key_missing` with facts `kids`, the missing ones.
   */
  checkRetired(referenced: Iterable<string>): void {
    const missing = [...new Set(referenced)].filter((kid) => !this.has(kid)).toSorted();
    if (missing.length > 0) throw new Refusal('vault_key_missing', { facts: { kids: missing } });
  }

  async #derive(
    kid: string,
    purpose: SealPurpose | MacPurpose,
    salt: string,
    algorithm: webcrypto.AesDerivedKeyParams | webcrypto.HmacKeyGenParams,
    usages: webcrypto.KeyUsage[],
  ): Promise<CryptoKey> {
    const root = this.#roots.get(kid);
    if (root === undefined) throw new Refusal('vault_key_missing', { facts: { kid } });
    const hkdf = {
      name: 'HKDF',
      hash: 'SHA-256',
      salt: new TextEncoder().encode(salt),
      info: new TextEncoder().encode(`keyturn/v1/${purpose}`),
    };
    return crypto.subtle.deriveKey(hkdf, root, algorithm, false, usages);
  }

  toJSON(): unknown {
    return { currentKid: this.currentKid, kids: this.kids };
  }

  [inspect.custom](): string {
    return `Keyring(${this.kids.join(', ')})`;
  }
}

/**
 * Imports the keys and wipes the given bytes. The first entry is the current key.
 *
 * @throws {Refusal} `vault_key_missing` when there is no entry at all.
 */
export async function openKeyring(entries: readonly KeyEntry[]): Promise<Keyring> {
  const current = entries[0];
  if (current === undefined) throw new Refusal('vault_key_missing', { message: 'There is no vault key.' });
  const roots = new Map<string, CryptoKey>();
  for (const { kid, bytes } of entries) {
    roots.set(kid, await crypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveKey']));
    bytes.fill(0);
  }
  return new Keyring(current.kid, roots);
}

/** A new random key as an entry for the operator's key text. The caller shows it once. */
export function generateKey(): { readonly kid: string; readonly entry: Secret } {
  const bytes = randomBytes(KEY_BYTES);
  const kid = kidOf(bytes);
  const entry = new Secret(`${kid}:${bytes.toString('base64url')}`);
  bytes.fill(0);
  return { kid, entry };
}
