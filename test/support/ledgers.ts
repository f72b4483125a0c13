/**
 * Ledgers for tests, one kind per engine, each with a clock that stands still until the test moves it. On PostgreSQL
 * the ledger's clock function is replaced by one that reads a table; nothing else differs from production.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { openLedger, type Ledger } from '../../src/store/ledger.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import type { SqlEngine, SqlValue } from '../../src/store/sql.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { openPostgresServer, type PostgresServer } from './postgres.ts';

/** When the clock of a test starts. */
export const START_MS = 1_800_000_000_000;

/** A ledger, its clock, and a way around both. */
export interface Rig {
  readonly engine: SqlEngine;
  readonly ledger: Ledger;
  /** Moves the clock to an instant. */
  at(ms: number): Promise<void>;
  /** Where the clock stands. */
  nowMs(): number;
  /** Another node on the same records and the same clock. */
  node(): Promise<{ engine: SqlEngine; ledger: Ledger }>;
  /** Rows, past the ledger. */
  rows<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]>;
  /** A statement, past the ledger. */
  run(sql: string, ...values: SqlValue[]): Promise<number>;
  close(): Promise<void>;
}

function rigOn(
  open: () => Promise<SqlEngine>,
  first: SqlEngine,
  set: (ms: number) => Promise<void>,
  end: () => Promise<void>,
): Rig {
  const engines = [first];
  let nowMs = START_MS;
  return {
    engine: first,
    ledger: openLedger(first),
    nowMs: () => nowMs,
    async at(ms) {
      nowMs = ms;
      await set(ms);
    },
    async node() {
      const engine = await open();
      engines.push(engine);
      return { engine, ledger: openLedger(engine) };
    },
    rows: (sql, ...values) => first.read((queries) => queries.all(sql, ...values)),
    run: (sql, ...values) => first.write((queries) => queries.run(sql, ...values)),
    async close() {
      for (const engine of engines) await engine.close();
      await end();
    },
  };
}

/** A ledger on a SQLite file in a directory of its own. */
export async function openSqliteRig(): Promise<Rig & { readonly file: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'keyturn-ledger-'));
  const file = join(directory, 'ledger.sqlite');
  let wallMs = START_MS;
  const open = () => openSqlite({ file, wallMs: () => wallMs, monotonicMs: () => 0 });
  const rig = rigOn(
    open,
    await open(),
    (ms) => {
      wallMs = ms;
      return Promise.resolve();
    },
    () => rm(directory, { recursive: true, force: true }),
  );
  return { ...rig, file };
}

let schemas = 0;

/** A ledger in a schema of its own. */
export async function openPostgresRig(server: PostgresServer): Promise<Rig & { readonly schema: string }> {
  const schema = `test_${process.pid}_${Date.now()}_${(schemas += 1)}`;
  const open = () => openPostgres({ connectionString: server.connectionString, schema, maxConnections: 20 });
  const first = await open();
  await first.write(async (queries) => {
    await queries.run(`CREATE TABLE test_clock (now_ms BIGINT NOT NULL)`);
    await queries.run(`INSERT INTO test_clock (now_ms) VALUES (${START_MS})`);
    await queries.run(
      `CREATE OR REPLACE FUNCTION keyturn_now() RETURNS bigint LANGUAGE sql VOLATILE
       SET search_path = ${schema} AS 'SELECT now_ms FROM test_clock'`,
    );
  });
  const rig = rigOn(
    open,
    first,
    (ms) => first.write(async (queries) => void (await queries.run(`UPDATE test_clock SET now_ms = ?`, ms))),
    () => Promise.resolve(),
  );
  return {
    ...rig,
    schema,
    async close() {
      await first.write((queries) => queries.run(`DROP SCHEMA "${schema}" CASCADE`));
      await rig.close();
    },
  };
}

/** Describes facts that hold on every engine. `rig` opens a ledger that is closed when its test ends. */
export function onEveryEngine(
  facts: (context: { engine: 'SQLite' | 'PostgreSQL'; rig: () => Promise<Rig> }) => void,
): void {
  const opened: Rig[] = [];
  const kept = async (rig: Rig) => {
    opened.push(rig);
    return rig;
  };
  afterEach(async () => {
    for (const rig of opened.splice(0)) await rig.close();
  });
  describe('on SQLite', () => {
    facts({ engine: 'SQLite', rig: async () => kept(await openSqliteRig()) });
  });
  describe('on PostgreSQL', () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await openPostgresServer();
    });
    afterAll(() => server.stop());
    facts({ engine: 'PostgreSQL', rig: async () => kept(await openPostgresRig(server)) });
  });
}
