/** Facts about the ledger itself, such as the epoch that ties it to its vault (R23). */
import type { SqlEngine } from './sql.ts';

export function metaTable(engine: SqlEngine) {
  return {
    readMeta: (name: string): Promise<string | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ value: string }>(`SELECT value FROM meta WHERE name = ?`, name);
        return row?.value;
      }),
    /** Ids of the vault keys that something kept still needs (R21). */
    referencedKids: (): Promise<string[]> =>
      engine.read(async (queries) => {
        const connections = await queries.all<{ record: string }>(
          `SELECT record FROM connections WHERE record IS NOT NULL`,
        );
        const links = await queries.all<{ handle_kid: string }>(
          `SELECT DISTINCT handle_kid FROM elicitations WHERE handle_kid IS NOT NULL AND finished_at IS NULL`,
        );
        const kids = connections.map((row) => (JSON.parse(row.record) as { kid: string }).kid);
        return [...new Set([...kids, ...links.map((row) => row.handle_kid)])];
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
