/**
 * One sealed canary for each kid, so that a mistyped key, a kid with another key's bytes, or a vault that is not the
 * one of this ledger is found at the start and not at the first token. A canary outlives its key: the kid of a retired
 * key cannot be given to another one.
 */
import { isRefusal, Refusal } from '../errors.ts';
import { decryptJwe, encryptJwe } from './jwe.ts';
import type { Keyring } from './keyring.ts';
import type { ProvenStore } from './proven-store.ts';

const SONG = new TextEncoder().encode('keyturn canary');

/**
 * Proves every key of the ring against its canary, and seals the canary of a kid that never had one.
 *
 * @param referenced kids that the ledger names: their canaries must be there already.
 * @throws {Refusal} as `readCanary`.
 */
export async function proveCanaries(
  keyring: Keyring,
  store: ProvenStore,
  referenced: readonly string[],
): Promise<void> {
  for (const kid of keyring.kids) {
    if (!referenced.includes(kid) && (await store.read(nameOf(kid))) === undefined) {
      await writeCanary(keyring, store, kid);
    }
    await readCanary(keyring, store, kid);
  }
}

/**
 * Opens the canary of a kid.
 *
 * @throws {Refusal} `vault_key_missing` if the key is not the one that sealed it; `vault_record_unreadable` if there is
 *   no canary or it is damaged.
 */
export async function readCanary(keyring: Keyring, store: ProvenStore, kid: string): Promise<void> {
  const name = nameOf(kid);
  const text = await store.read(name);
  if (text === undefined) throw unreadable(name, 'missing');
  const opened = await decryptJwe(text, await keyring.sealKey(kid, 'vault', name), headerOf(kid));
  if (!('problem' in opened)) return;
  if (opened.problem !== 'ciphertext') throw unreadable(name, opened.problem);
  // A wrong key and a damaged ciphertext look the same; the wrong key is by far the likelier.
  throw new Refusal('vault_key_missing', {
    message: `The vault key "${kid}" is not the one that was used before under this kid.`,
    facts: { kid },
  });
}

async function writeCanary(keyring: Keyring, store: ProvenStore, kid: string): Promise<void> {
  const name = nameOf(kid);
  const key = await keyring.sealKey(kid, 'vault', name);
  try {
    await store.write(name, await encryptJwe(SONG, key, headerOf(kid)));
  } catch (error) {
    // Another node of a fresh installation sealed its canary in between; `readCanary` judges that one.
    if (!isRefusal(error, 'vault_unavailable') || error.facts['outcome'] !== 'changed') throw error;
  }
}

/** Holds a dot, so no reserved record key equals it. */
function nameOf(kid: string): string {
  return `canary.${kid}`;
}

function headerOf(kid: string) {
  return { typ: 'keyturn-canary', kid };
}

function unreadable(recordKey: string, problem: string): Refusal {
  return new Refusal('vault_record_unreadable', {
    facts: { recordKey, problem, missing: problem === 'missing' },
  });
}
