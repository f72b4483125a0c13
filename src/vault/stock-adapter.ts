/**
 * A stock Keyv adapter (`@keyv/redis`, `@keyv/valkey`, …) as a `VaultTable`.
 *
 * Stock adapters of the Keyv 5 generation tell of failures in up to three ways: by rejecting if their own throwing flag
 * is set, by an `error` event, or by `false`. This wrapper sets the flags and listens; it believes an absence only if
 * no error event came while it was asked for. It refuses nothing about durability: Redis and Valkey need `noeviction`
 * and acknowledged persistence, which only the operator can arrange (R20).
 */
import type { KeyvStoreAdapter } from 'keyv';
import type { VaultTable } from './vault-table.ts';

/** Stands before every key, since such a store is often shared with other programs. */
const KEY_PREFIX = 'keyturn-vault:';

/** The flags that adapters of this generation know; where they are absent, setting them does nothing. */
interface ThrowingFlags {
  throwOnErrors?: boolean;
  throwOnConnectError?: boolean;
}

/**
 * Wraps an adapter.
 *
 * @param adapter an adapter instance, not a `Keyv`; it must not be used with a default ttl.
 * @param options.onError called with every `error` event, such as a dropped connection between two requests.
 */
export function tableFromKeyv(
  adapter: KeyvStoreAdapter,
  options: { onError?: (error: unknown) => void } = {},
): VaultTable {
  const flags = adapter as ThrowingFlags;
  flags.throwOnErrors = true;
  flags.throwOnConnectError = true;

  let errors = 0;
  let lastError: unknown;
  // Without a listener, Node's own emitter would throw the error into the process.
  adapter.on('error', (error: unknown) => {
    errors += 1;
    lastError = error;
    options.onError?.(error);
  });

  /** Whether errors came during an act; concurrent acts may blame each other, which fails closed. */
  const watching = async <T>(act: () => Promise<T>, believe: (result: T) => boolean): Promise<T> => {
    const before = errors;
    const result = await act();
    if (errors !== before && !believe(result)) {
      throw new Error('the adapter emitted an error', { cause: lastError });
    }
    return result;
  };

  return {
    async get(key) {
      const found = await watching(
        async () => adapter.get<string>(KEY_PREFIX + key),
        (text) => text !== undefined && text !== null,
      );
      if (found === undefined || found === null) return undefined;
      if (typeof found !== 'string') throw new TypeError('the adapter gave something that is not a text');
      return found;
    },
    async set(key, value) {
      const done: unknown = await adapter.set(KEY_PREFIX + key, value);
      // Error events do not count here: the write is read back, and a live token must not be lost to a stray event.
      if (done === false) throw new Error('the adapter reported that it did not write');
    },
    async delete(key) {
      await watching(
        async () => adapter.delete(KEY_PREFIX + key),
        () => false,
      );
    },
  };
}
