/**
 * What a vault record belongs to. All of it is in the record's protected header and so under its authentication tag
 * (R21): a record moved to another row, owner or generation does not open there.
 */
import type { ProtectedHeader } from './jwe.ts';
import type { Keyring } from './keyring.ts';

/** The place of a record, as the ledger knows it. */
export interface RecordBinding {
  /** Key of the record in the vault, from `reserveKey`; used once. */
  readonly recordKey: string;
  /** Whose tokens these are: the owner text of the ledger, as `ownerOf` makes it. Kept only as a keyed hash. */
  readonly owner: string;
  /** Name of the provider in the configuration. */
  readonly provider: string;
  readonly connectionId: string;
  /** Token generation of the connection that this record is (R2). */
  readonly generation: number;
  /** Token set of a provider, or a credential that the person typed into our form. */
  readonly kind: 'tokens' | 'credential';
  /** Epoch of ledger and vault when the record was written (R23). */
  readonly epoch?: number;
}

/** Format of records; a reader refuses every other one. */
const RECORD_FORMAT = 1;

const MOST_NAME_LENGTH = 2_048;
const RECORD_KEY = /^[A-Za-z0-9_-]{16,64}$/;

/**
 * The protected header of a record under one key.
 *
 * @throws {TypeError} naming the member of the binding that is not of its type: a bug of the caller.
 * @throws {Refusal} `vault_key_missing` with fact `kid`.
 */
export async function headerOf(
  binding: RecordBinding,
  keyring: Keyring,
  kid: string,
): Promise<ProtectedHeader> {
  checkBinding(binding);
  return {
    typ: 'keyturn-record',
    fmt: RECORD_FORMAT,
    kid,
    rec: binding.recordKey,
    own: await hashOwner(binding.owner, keyring, kid),
    prv: binding.provider,
    con: binding.connectionId,
    gen: binding.generation,
    knd: binding.kind,
    ...(binding.epoch === undefined ? {} : { epo: binding.epoch }),
  };
}

/** Keyed, so that whoever holds only the vault's table cannot test it against a list of people. */
async function hashOwner(owner: string, keyring: Keyring, kid: string): Promise<string> {
  // As JSON, since UTF-8 alone makes one text of different lone surrogates.
  const input = new TextEncoder().encode(JSON.stringify(owner));
  const mac = await crypto.subtle.sign('HMAC', await keyring.macKey(kid, 'owners'), input);
  return Buffer.from(mac).toString('base64url');
}

function checkBinding(binding: RecordBinding): void {
  const texts = {
    owner: binding.owner,
    provider: binding.provider,
    connectionId: binding.connectionId,
  };
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text !== 'string' || text === '' || text.length > MOST_NAME_LENGTH) {
      throw new TypeError(`${name} is not a text of 1 to ${MOST_NAME_LENGTH} characters`);
    }
  }
  if (!RECORD_KEY.test(binding.recordKey)) throw new TypeError('recordKey was not made by reserveKey');
  if (!isCount(binding.generation)) throw new TypeError('generation is not a whole number');
  if (binding.epoch !== undefined && !isCount(binding.epoch)) {
    throw new TypeError('epoch is not a whole number');
  }
  if (binding.kind !== 'tokens' && binding.kind !== 'credential') throw new TypeError('kind is unknown');
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
