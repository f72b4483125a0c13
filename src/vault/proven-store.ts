/**
 * Keyv over a `VaultTable`, made honest (R20). Keyv 5 by default turns a failed read into "nothing there" and a failed
 * write into `false`, and a record may carry an expiry at which Keyv deletes it while reading. So the throwing flag is
 * set, values are stored as they are (no envelope, no expiry), no ttl is passed, and every write and delete is read
 * back before it counts. It refuses to guess: an error is never reported as a missing record.
 */
import { Keyv, type KeyvStoreAdapter, type StoredData } from 'keyv';
import { Refusal } from '../errors.ts';
import type { VaultTable } from './vault-table.ts';

/** Reads and writes of which success means success. Each rejects with `Refusal('vault_unavailable')` otherwise. */
export interface ProvenStore {
  /** The text, or `undefined` if the store answered that there is none. */
  read(key: string): Promise<string | undefined>;
  /** Writes and reads back. After a failure the text may or may not be stored. */
  write(key: string, text: string): Promise<void>;
  /** Deletes and reads back; deleting what is not there succeeds. */
  remove(key: string): Promise<void>;
}

/** Opens the store. The table is reached through Keyv alone. */
export function proveStore(table: VaultTable): ProvenStore {
  const keyv = new Keyv({
    store: new TableAdapter(table),
    throwOnErrors: true,
    useKeyPrefix: false,
    serialize: ({ value }) => value as string,
    deserialize: <Value>(text: string) => ({ value: text as Value }),
  });

  const read = (key: string) => attempt('get', () => keyv.get<string>(key));

  return {
    read,
    async write(key, text) {
      const written = await attempt('set', () => keyv.set(key, text));
      if (!written) throw unavailable('set', 'reported_failure');
      const found = await read(key);
      if (found !== text) throw unavailable('set', found === undefined ? 'lost' : 'changed');
    },
    async remove(key) {
      // What Keyv returns here is useless: `false` stands for "was not there" and for "failed".
      await attempt('delete', () => keyv.delete(key));
      if ((await read(key)) !== undefined) throw unavailable('delete', 'still_there');
    },
  };
}

/** Keyv's shape around a `VaultTable`. */
class TableAdapter implements KeyvStoreAdapter {
  readonly opts = {};
  namespace: string | undefined;
  readonly #table: VaultTable;

  constructor(table: VaultTable) {
    this.#table = table;
  }

  // Keyv passes what is not a text through as if it were its own envelope, so this is the last place to see it.
  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    const text: unknown = await this.#table.get(key);
    if (text === undefined || text === null) return undefined;
    if (typeof text !== 'string') throw new TypeError('the table gave something that is not a text');
    return text as StoredData<Value>;
  }

  async set(key: string, text: string): Promise<void> {
    await this.#table.set(key, text);
  }

  async delete(key: string): Promise<boolean> {
    await this.#table.delete(key);
    return true;
  }

  async clear(): Promise<void> {
    throw new Error('the vault is never cleared');
  }

  /** A table has no events: it rejects. */
  on(): this {
    return this;
  }
}

type Operation = 'get' | 'set' | 'delete';

async function attempt<T>(operation: Operation, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw unavailable(operation, 'failed', error);
  }
}

function unavailable(operation: Operation, outcome: string, cause?: unknown): Refusal {
  return new Refusal('vault_unavailable', {
    facts: { operation, outcome },
    ...(cause === undefined ? {} : { cause }),
  });
}
