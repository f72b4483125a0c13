/** Facts about the ledger itself, such as the epoch that ties it to its vault (R23). */
import type { Queries, SqlEngine } from './sql.ts';

/** What still needs a vault key. */
export interface KidUse {
  readonly kid: string;
  /** Sealed token sets: `keys rewrap` moves them to the current key. */
  records: number;
  /** Open links: they end by themselves. */
  links: number;
  /** When the last of the open links is over. */
  linksUntilMs: number | null;
}

/** The kid of every sealed token set that counts, or will when its sign-in is finished. */
async function recordKids(queries: Queries): Promise<string[]> {
  const rows = await queries.all<{ sealed: string }>(
    `SELECT record AS sealed FROM connections WHERE record IS NOT NULL
     UNION ALL SELECT sealed FROM attempts WHERE phase IN ('exchanging', 'exchanged') AND sealed IS NOT NULL`,
  );
  return rows.map((row) => (JSON.parse(row.sealed) as { kid: string }).kid);
}

export function metaTable(engine: SqlEngine) {
  return {
    readMeta: (name: string): Promise<string | undefined> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ value: string }>(`SELECT value FROM meta WHERE name = ?`, name);
        return row?.value;
      }),
    /** Ids of the vault keys that something kept still needs (R21), and how much does. */
    kidUses: (): Promise<KidUse[]> =>
      engine.read(async (queries) => {
        const uses = new Map<string, KidUse>();
        const use = (kid: string): KidUse => {
          const one = uses.get(kid) ?? { kid, records: 0, links: 0, linksUntilMs: null };
          uses.set(kid, one);
          return one;
        };
        for (const kid of await recordKids(queries)) use(kid).records += 1;
        const links = await queries.all<{ kid: string; many: number; until: number }>(
          `SELECT handle_kid AS kid, count(*) AS many, max(deadline) AS until FROM elicitations
           WHERE handle_kid IS NOT NULL AND finished_at IS NULL GROUP BY handle_kid`,
        );
        for (const { kid, many, until } of links) {
          const one = use(kid);
          one.links = Number(many);
          one.linksUntilMs = Number(until);
        }
        return [...uses.values()];
      }),

    /** The ids alone, fast enough for the start of a ledger of a million questions. */
    referencedKids: (): Promise<string[]> =>
      engine.read(async (queries) => {
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
        return [...new Set([...(await recordKids(queries)), ...links.map((row) => row.handle_kid)])];
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
