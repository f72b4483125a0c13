/** Facts about the ledger itself, such as the epoch that ties it to its vault (R23). */
import type { SqlEngine } from './sql.ts';

export function metaTable(engine: SqlEngine) {
  return {
    readMeta: (name: string): Promise<string | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ value: string }>(`SELECT value FROM meta WHERE name = ?`, name);
        return row?.value;
      }),
    writeMeta: async (name: string, value: string): Promise<void> => {
      await engine.write((queries) =>
        queries.run(
          `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
          name,
          value,
        ),
      );
    },
  };
}
