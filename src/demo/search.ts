/** The search at the end of the demo: every secret of the run, in every byte that left the vault. */
import { DatabaseSync } from 'node:sqlite';

/** A place that was searched. */
export interface Searched {
  readonly name: string;
  readonly text: string;
}

/** Every text and number of every table but the vault's, as one text. */
export function dumpLedger(file: string): string {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const tables = db
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'vault_records'`)
      .all();
    return tables
      .map((table) => JSON.stringify(db.prepare(`SELECT * FROM "${String(table['name'])}"`).all()))
      .join('\n');
  } finally {
    db.close();
  }
}

/** Where a secret, or the first eight characters of one, was found. */
export function findSecrets(places: readonly Searched[], secrets: readonly string[]): string[] {
  const starts = [
    ...new Set(secrets.filter((secret) => secret.length >= 8).map((secret) => secret.slice(0, 8))),
  ];
  return places.flatMap(({ name, text }) => starts.filter((start) => text.includes(start)).map(() => name));
}
