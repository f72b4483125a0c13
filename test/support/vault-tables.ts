/** Vault tables for tests: in memory, and with one fault each. */
import { openKeyring, type Keyring } from '../../src/vault/keyring.ts';
import type { VaultTable } from '../../src/vault/vault-table.ts';

/** A table in memory whose rows a test may look at and damage. */
export function memoryTable(): VaultTable & { readonly rows: Map<string, string> } {
  const rows = new Map<string, string>();
  return {
    rows,
    get: async (key) => rows.get(key),
    set: async (key, value) => {
      rows.set(key, value);
    },
    delete: async (key) => {
      rows.delete(key);
    },
  };
}

/** A keyring of one key per kid; each key is its seed repeated with a counter. */
export function keyringOf(keys: Readonly<Record<string, number>>): Promise<Keyring> {
  return openKeyring(Object.entries(keys).map(([kid, seed]) => ({ kid, bytes: keyBytes(seed) })));
}

/** 32 bytes that differ between seeds. */
export function keyBytes(seed: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: 32 }, (_, index) => (seed * 41 + index * 7) % 256);
}

/** The refusal, or whatever else, that an act rejects with. */
export async function thrownBy(act: () => unknown): Promise<unknown> {
  try {
    await act();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
