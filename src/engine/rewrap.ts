/**
 * Moves sealed token sets to the current vault key, while the server runs: one new record and one swing of the pointer
 * each, without a new generation (R2). Told by an operator, not by a timer: during a rotation nodes differ about
 * which key is current.
 */
import { isRefusal } from '../errors.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Connection, SealedGrant } from '../store/records.ts';
import type { Vault } from '../vault/vault.ts';
import { bindingOf } from './grants.ts';

/** What came of a round over all connections. */
export interface Rewrapped {
  /** Records that are under the current key now. */
  readonly moved: number;
  /** Connections whose record cannot be opened: they sign in again when they are used. */
  readonly unreadable: readonly string[];
}

export function openRewrap(options: { ledger: Ledger; vault: Vault }) {
  const { ledger, vault } = options;

  async function move(connection: Connection, record: SealedGrant): Promise<boolean> {
    const recordKey = vault.reserveKey();
    await ledger.reserveRecord(recordKey);
    const sealed = await vault.rewrap(bindingOf(connection, record), record.digest, recordKey);
    return ledger.rewrapRecord(connection.id, record.recordKey, { ...record, ...sealed });
  }

  return async function rewrap(): Promise<Rewrapped> {
    const unreadable: string[] = [];
    let moved = 0;
    for (let after = ''; ;) {
      const page = await ledger.findConnections({ after, limit: 100 });
      for (const connection of page) {
        // Again, if a refresh swings the pointer meanwhile: it may have sealed under the key that another node thinks current.
        for (let current: Connection | undefined = connection; current !== undefined;) {
          const { record } = current;
          if (record === null || record.kid === vault.currentKid) break;
          try {
            if (await move(current, record)) {
              moved += 1;
              break;
            }
          } catch (error) {
            if (!isRefusal(error, 'vault_record_unreadable')) throw error;
            const again = await ledger.readConnection(current.id);
            if (again?.record?.recordKey === record.recordKey) {
              unreadable.push(current.id);
              break;
            }
          }
          current = await ledger.readConnection(current.id);
        }
      }
      const last = page.at(-1);
      if (last === undefined) return { moved, unreadable };
      after = last.id;
    }
  };
}
