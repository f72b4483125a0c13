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
        // From one id to the next along the index: there are few, however many questions wait.
        const links = await queries.all<{ handle_kid: string }>(
          `WITH RECURSIVE kids(handle_kid) AS (
             SELECT min(handle_kid) FROM elicitations WHERE handle_kid IS NOT NULL AND finished_at IS NULL
             UNION ALL
             SELECT (SELECT min(handle_kid) FROM elicitations
                     WHERE handle_kid IS NOT NULL AND finished_at IS NULL AND handle_kid > kids.handle_kid)
             FROM kids WHERE kids.handle_kid IS NOT NULL
           ) SELECT handle_kid FROM kids WHERE handle_kid IS NOT NULL`,
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
