/**
 * The vault's half of the restore check (R23): a number that ledger and vault share. Comparing the two and refusing
 * the start is the caller's, who holds both.
 *
 * It is not sealed: it guards against mixed backups, and whoever could forge it could as well put back an old table.
 */
import { Refusal } from '../errors.ts';
import type { ProvenStore } from './proven-store.ts';

const NAME = 'vault.epoch';

/**
 * The epoch, or `undefined` in a vault that never had one.
 *
 * @throws {Refusal} `vault_record_unreadable` if something else stands in its place.
 */
export async function readEpoch(store: ProvenStore): Promise<number | undefined> {
  const text = await store.read(NAME);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    throw new Refusal('vault_record_unreadable', {
      facts: { recordKey: NAME, problem: 'malformed', missing: false },
    });
  }
  return Number(text);
}

/** Replaces the epoch. */
export async function writeEpoch(store: ProvenStore, epoch: number): Promise<void> {
  if (!Number.isSafeInteger(epoch) || epoch < 0) throw new TypeError('epoch is not a whole number');
  await store.write(NAME, String(epoch));
}
