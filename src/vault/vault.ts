/**
 * The vault: tokens at rest, one immutable JWE per record under a fresh key (R20, R21).
 *
 * It knows nothing of connections: the ledger says which record counts, and the pointer swing there is the commit.
 * Sealing happens before it, under a key that the ledger reserved, so that whoever takes over can find the answer
 * (`recover`, R2) and the sweeper can delete it (R22). The vault never lists, never expires and never overwrites.
 */
import { createHash, randomBytes } from 'node:crypto';
import { Refusal } from '../errors.ts';
import { Secret } from '../secret.ts';
import { proveCanaries, readCanary } from './canary.ts';
import { readEpoch, writeEpoch } from './epoch.ts';
import { decryptJwe, encryptJwe, peekHeader } from './jwe.ts';
import { isKid } from './key-text.ts';
import type { Keyring } from './keyring.ts';
import { proveStore } from './proven-store.ts';
import { headerOf, type RecordBinding } from './record-binding.ts';
import type { VaultTable } from './vault-table.ts';

/** Most bytes (UTF-8) of a plaintext. */
export const MOST_PLAINTEXT_BYTES = 64 * 1024;

/** Most characters of a record: the plaintext in base64url, the header, room for long names. */
const MOST_RECORD_LENGTH = 128 * 1024;

/** What the ledger keeps of a sealed record. */
export interface SealedRecord {
  /** SHA-256 of the record's ciphertext text, base64url. */
  readonly digest: string;
  /** Key that opens it; referenced until the record is gone (R21). */
  readonly kid: string;
}

/** All methods reject with `Refusal('vault_unavailable')` when the store fails; nothing is ever assumed. */
export interface Vault {
  /** Kid of everything sealed from now on; rows with another kid wait for `rewrap`. */
  readonly currentKid: string;

  /** A fresh record key. Write it to the ledger before anything is sealed under it. */
  reserveKey(): string;

  /**
   * Writes a record and reads it back. Sealing the same plaintext under the same binding again gives the record that is
   * there, so a caller that heard `vault_unavailable` may simply try again.
   *
   * @throws {Refusal} `value_too_large` above 64 KiB; `vault_record_exists` if the key holds anything else.
   */
  seal(binding: RecordBinding, plaintext: Secret): Promise<SealedRecord>;

  /**
   * Opens a record.
   *
   * @param digest what the ledger keeps of it; without, any record that is authentic for the binding opens.
   * @throws {Refusal} `vault_record_unreadable` with facts `recordKey`, `missing`, and `problem` (`missing | oversized |
   *   digest | malformed | header | ciphertext`); `vault_key_missing` with fact `kid`. If `missing`, read the pointer
   *   again before judging: the record may have been superseded (R22).
   */
  open(binding: RecordBinding, digest?: string): Promise<Secret>;

  /**
   * Looks under a reserved key for an answer that an earlier holder sealed but did not commit (R2, R6).
   *
   * @returns `undefined` only if the store answered that nothing is there.
   * @throws {Refusal} as `open`.
   */
  recover(binding: RecordBinding): Promise<(SealedRecord & { readonly plaintext: Secret }) | undefined>;

  /** Deletes a record by its key and makes sure that it is gone. A missing one is fine. */
  delete(recordKey: string): Promise<void>;

  /**
   * Seals the same meaning again under the current key, as a new record; the old one stays. The ledger swings its
   * pointer without a new generation (R2), then deletes the old record when the longest read is over.
   *
   * @param digest what the ledger keeps of the old record.
   * @param reservedKey key of the new record, already written to the ledger.
   */
  rewrap(
    binding: RecordBinding,
    digest: string,
    reservedKey: string,
  ): Promise<SealedRecord & { readonly recordKey: string }>;

  /**
   * Start-up check: every configured key opens the canary that was sealed under its kid before, and every
   * kid that the ledger names is configured and known to this vault. Seals the canary of a new kid.
   *
   * @param referenced all kids that the ledger names.
   * @throws {Refusal} `vault_key_missing` (facts `kids`, or `kid` whose key is another one than before);
   *   `vault_record_unreadable` if the vault lost, or never had, the canary of a referenced kid.
   */
  proveKeys(referenced: Iterable<string>): Promise<void>;

  /** Health check: the current key's canary can be read and opened. */
  probe(): Promise<void>;

  /** The epoch kept in the vault, `undefined` in a new vault (R23). */
  epoch(): Promise<number | undefined>;

  /** Sets the epoch: at the first start, and by a restore. */
  setEpoch(epoch: number): Promise<void>;
}

/**
 * Opens a vault.
 *
 * @param options.table where records rest; reached through Keyv alone.
 */
export function openVault(options: { keyring: Keyring; table: VaultTable }): Vault {
  const { keyring } = options;
  const store = proveStore(options.table);

  async function openText(binding: RecordBinding, text: string, digest?: string) {
    const refuse = (problem: string) => unreadable(binding.recordKey, problem);
    if (text.length > MOST_RECORD_LENGTH) throw refuse('oversized');
    const found = digestOf(text);
    if (digest !== undefined && digest !== found) throw refuse('digest');
    const kid = peekHeader(text)?.['kid'];
    if (!isKid(kid)) throw refuse('malformed');
    const header = await headerOf(binding, keyring, kid);
    const key = await keyring.sealKey(kid, 'vault', binding.recordKey);
    const opened = await decryptJwe(text, key, header);
    if ('problem' in opened) throw refuse(opened.problem);
    return { plaintext: new Secret(Buffer.from(opened.plaintext).toString()), digest: found, kid };
  }

  async function recover(binding: RecordBinding) {
    const text = await store.read(binding.recordKey);
    return text === undefined ? undefined : openText(binding, text);
  }

  async function open(binding: RecordBinding, digest?: string) {
    const text = await store.read(binding.recordKey);
    if (text === undefined) throw unreadable(binding.recordKey, 'missing');
    return (await openText(binding, text, digest)).plaintext;
  }

  async function seal(binding: RecordBinding, plaintext: Secret): Promise<SealedRecord> {
    const kid = keyring.currentKid;
    const header = await headerOf(binding, keyring, kid);
    const bytes = encode(plaintext);
    if (bytes.length > MOST_PLAINTEXT_BYTES) {
      throw new Refusal('value_too_large', {
        facts: { bytes: bytes.length, limitBytes: MOST_PLAINTEXT_BYTES },
      });
    }
    const there = await store.read(binding.recordKey);
    if (there !== undefined) return sameOrRefuse(binding, plaintext, there);

    const key = await keyring.sealKey(kid, 'vault', binding.recordKey);
    const text = await encryptJwe(bytes, key, header);
    await store.write(binding.recordKey, text);
    return { digest: digestOf(text), kid };
  }

  async function sameOrRefuse(binding: RecordBinding, plaintext: Secret, text: string) {
    const opened = await openText(binding, text).catch(() => undefined);
    if (opened === undefined || !opened.plaintext.equals(plaintext)) {
      throw new Refusal('vault_record_exists', { facts: { recordKey: binding.recordKey } });
    }
    return { digest: opened.digest, kid: opened.kid };
  }

  return {
    currentKid: keyring.currentKid,
    reserveKey: () => randomBytes(24).toString('base64url'),
    seal,
    open,
    recover,
    delete: (recordKey) => store.remove(recordKey),
    async rewrap(binding, digest, reservedKey) {
      const plaintext = await open(binding, digest);
      const sealed = await seal({ ...binding, recordKey: reservedKey }, plaintext);
      return { recordKey: reservedKey, ...sealed };
    },
    async proveKeys(referenced) {
      const kids = [...referenced];
      keyring.checkRetired(kids);
      await proveCanaries(keyring, store, kids);
    },
    probe: () => readCanary(keyring, store, keyring.currentKid),
    epoch: () => readEpoch(store),
    setEpoch: (epoch) => writeEpoch(store, epoch),
  };
}

function encode(plaintext: Secret): Buffer {
  const text = plaintext.reveal();
  if (!text.isWellFormed()) throw new TypeError('the plaintext is not well-formed Unicode and would change');
  return Buffer.from(text);
}

/** Finds a swapped or rolled-back record even where the store answers with an authentic one. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function unreadable(recordKey: string, problem: string): Refusal {
  return new Refusal('vault_record_unreadable', {
    facts: { recordKey, problem, missing: problem === 'missing' },
  });
}
