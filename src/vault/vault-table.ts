/** Where vault records rest: the least that a store must offer. No listing, no expiry, no overwriting by time. */

/**
 * A durable table of texts.
 *
 * Contract: `set` resolves once the text is durable; `get` gives `undefined` only if nothing is stored under the key,
 * and rejects on any failure; `delete` of a missing key resolves. Keys are up to 80 characters of `A–Z a–z 0–9 - _ .`;
 * values up to 128 KiB of ASCII. `store/` implements it on the ledger's own database; `tableFromKeyv` on a stock
 * Keyv adapter.
 */
export interface VaultTable {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
  delete(key: string): Promise<void>;
}
