/** The table that the vault keeps its sealed records in, on the ledger's own database. It sees ciphertext only. */
import type { SqlEngine } from './sql.ts';

export function vaultTable(engine: SqlEngine) {
  return {
    get: (key: string): Promise<string | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ sealed: string }>(
          `SELECT sealed FROM vault_records WHERE record_key = ?`,
          key,
        );
        return row?.sealed;
      }),
    set: async (key: string, value: string): Promise<void> => {
      await engine.write((queries) =>
        queries.run(
          `INSERT INTO vault_records (record_key, sealed) VALUES (?, ?)
           ON CONFLICT (record_key) DO UPDATE SET sealed = excluded.sealed`,
          key,
          value,
        ),
      );
    },
    delete: async (key: string): Promise<void> => {
      await engine.write((queries) => queries.run(`DELETE FROM vault_records WHERE record_key = ?`, key));
    },
  };
}
