/**
 * PostgreSQL through `pg`: READ COMMITTED transactions, each statement on the latest commit, rows locked before their
 * clock is read (R4). The tables live in a schema of their own, so that the database may be shared.
 *
 * Trouble on the way to the server is `store_unavailable` and never ends the process: the pool replaces what broke. A
 * transaction that PostgreSQL rolled back for a deadlock is run again a few times; one whose COMMIT was lost on the
 * way is not, since nobody knows how it ended; every write of the ledger is conditional, so that its caller may.
 */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  DatabaseError,
  Pool,
  types,
  type ClientBase,
  type ClientConfig,
  type PoolClient,
  type QueryConfig,
} from 'pg';
import { Refusal } from '../errors.ts';
import type { Secret } from '../secret.ts';
import { mayRunAgain, named } from './postgres-errors.ts';
import { listen, payloads } from './postgres-hints.ts';
import { migrate } from './schema.ts';
import type { Hint, Queries, SqlEngine, SqlValue } from './sql.ts';

/** How to reach the database. */
export interface PostgresOptions {
  /** `postgresql://user:password@host/database`. */
  readonly connectionString: Secret;
  /** TLS as `pg` takes it; from the connection string (`sslmode`, `sslrootcert`) by default. */
  readonly ssl?: ClientConfig['ssl'];
  /** Shown in `pg_stat_activity`. Default `keyturn`. */
  readonly applicationName?: string;
  /** Schema of the tables: lower-case letters, digits and `_`. Default `keyturn`. */
  readonly schema?: string;
  /** Hints of other nodes, over one more connection. Default true. */
  readonly listen?: boolean;
  /** Default 10. */
  readonly maxConnections?: number;
  /** How long to wait for a connection, in milliseconds. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** Longest statement, in milliseconds. Default 15000. */
  readonly statementTimeoutMs?: number;
  /** Longest wait for a lock, in milliseconds. Default 10000. */
  readonly lockTimeoutMs?: number;
  /** Whether statements are prepared once per connection; off for poolers that change servers between them. Default true. */
  readonly prepare?: boolean;
}

/** Runs of one transaction before a deadlock counts as trouble. */
const MOST_RUNS = 6;
/** Statements that are prepared by name; any beyond, which only dynamic SQL could bring, are sent as they are. */
const MOST_PREPARED = 400;
const INT8 = 20;

/** `bigint` columns hold milliseconds and counters below 2^53. */
const TYPES: ClientConfig['types'] = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary'
      ? Number
      : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** The shared SQL in PostgreSQL's own: numbered placeholders, and a name under which it is prepared. */
class Statements {
  readonly #known = new Map<string, { text: string; name?: string }>();
  readonly #prepare: boolean;

  constructor(prepare: boolean) {
    this.#prepare = prepare;
  }

  query(sql: string, values: readonly SqlValue[]): QueryConfig {
    let known = this.#known.get(sql);
    if (known === undefined) {
      let place = 0;
      const text = sql.replaceAll('?', () => `$${(place += 1)}`);
      known = { text };
      if (this.#prepare && this.#known.size < MOST_PREPARED) {
        known.name = `k${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
        this.#known.set(sql, known);
      }
    }
    return { ...known, values: values.map(storable) };
  }
}

/** PostgreSQL's text has no NUL; as with lone surrogates, the replacement character stands for it. */
function storable(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}

type Run = (query: QueryConfig) => Promise<{ rows: unknown[]; rowCount: number | null }>;

/** Statements on a transaction's client, or each on any client of the pool. */
class Session implements Queries {
  readonly lock = ' FOR UPDATE';
  readonly lockFree = ' FOR UPDATE SKIP LOCKED';
  readonly hints: Hint[] = [];
  readonly #statements: Statements;
  readonly #run: Run;

  constructor(statements: Statements, run: Run) {
    this.#statements = statements;
    this.#run = run;
  }

  async #send(sql: string, values: readonly SqlValue[]) {
    try {
      return await this.#run(this.#statements.query(sql, values));
    } catch (error) {
      throw named(error);
    }
  }

  async all<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]> {
    return (await this.#send(sql, values)).rows as Row[];
  }

  async get<Row>(sql: string, ...values: SqlValue[]): Promise<Row | undefined> {
    return (await this.#send(sql, values)).rows[0] as Row | undefined;
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    return (await this.#send(sql, values)).rowCount ?? 0;
  }

  async nowMs(): Promise<number> {
    const row = await this.get<{ now_ms: number }>('SELECT keyturn_now() AS now_ms');
    if (row === undefined) throw new Error('the clock gave no row');
    return row.now_ms;
  }

  hint(hint: Hint): Promise<void> {
    this.hints.push(hint);
    return Promise.resolve();
  }
}

function clientConfig(options: PostgresOptions): ClientConfig {
  const config: ClientConfig = {
    connectionString: options.connectionString.reveal(),
    application_name: options.applicationName ?? 'keyturn',
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    statement_timeout: options.statementTimeoutMs ?? 15_000,
    lock_timeout: options.lockTimeoutMs ?? 10_000,
    idle_in_transaction_session_timeout: 30_000,
    // A server that went silent is given up a little after it would have given up the statement itself.
    query_timeout: (options.statementTimeoutMs ?? 15_000) + 5_000,
    keepAlive: true,
    types: TYPES,
    ...(options.ssl === undefined ? {} : { ssl: options.ssl }),
  };
  try {
    // Reads the connection string; nothing is opened yet.
    void new Client(config);
  } catch {
    // Without its cause, which would carry the string and the password in it.
    throw new Refusal('configuration_invalid', {
      message: 'ledger.postgres: is not a connection string like postgresql://user:password@host/database',
    });
  }
  return config;
}

/**
 * Opens the ledger's database and brings its tables up to date. Nodes that start together migrate once.
 *
 * @throws Refusal `store_unavailable`, `store_corrupt`, `store_newer`, `configuration_invalid`.
 */
export async function openPostgres(options: PostgresOptions): Promise<SqlEngine> {
  const schema = options.schema ?? 'keyturn';
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new Refusal('configuration_invalid', {
      message: 'ledger.schema: must be lower-case letters, digits and _, at most 63',
    });
  }
  const config = clientConfig(options);
  const statements = new Statements(options.prepare ?? true);
  const node = randomUUID();
  const channel = `keyturn_${schema}`.slice(0, 63);
  const listeners = new Set<(hint: Hint) => void>();
  const tell = (hint: Hint) => listeners.forEach((listener) => listener(hint));
  const pool = new Pool({
    ...config,
    max: options.maxConnections ?? 10,
    onConnect: async (client: ClientBase) => {
      // A commit has to be durable, whatever the server's default; a stricter default stays.
      await client.query(
        `SELECT set_config('search_path', $1, false), set_config('synchronous_commit',
           CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`,
        [schema],
      );
    },
  });
  // Idle connections that break are replaced by the next use; without a listener they would end the process.
  pool.on('error', () => undefined);
  let closed = false;

  async function transact<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    if (closed) throw new Refusal('store_unavailable');
    const client = await pool.connect().catch((error: unknown) => {
      throw named(error);
    });
    let broken: Error | undefined;
    const fail = (error: Error) => (broken = error);
    client.on('error', fail);
    const session = new Session(statements, (query) => client.query(query));
    try {
      await session.run('BEGIN ISOLATION LEVEL READ COMMITTED');
      const result = await work(session);
      for (const payload of payloads(node, session.hints)) {
        await session.run('SELECT pg_notify(?, ?)', channel, payload);
      }
      await commit(client);
      queueMicrotask(() => session.hints.forEach(tell));
      return result;
    } catch (error) {
      // On a connection that did not answer, nothing more is asked: the server rolls back when it is gone.
      if (error instanceof Refusal && !(error.cause instanceof DatabaseError)) broken ??= error;
      else await client.query('ROLLBACK').catch((failure: Error) => (broken ??= failure));
      throw error;
    } finally {
      client.off('error', fail);
      client.release(broken);
    }
  }

  async function write<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    for (let run = 1; ; run += 1) {
      try {
        return await transact(work);
      } catch (error) {
        if (!mayRunAgain(error)) throw error;
        if (run === MOST_RUNS) throw new Refusal('store_unavailable', { cause: error });
      }
      await sleep(Math.random() * 10 * 2 ** run);
    }
  }

  const anyClient = new Session(statements, (query) => pool.query(query));
  try {
    await write((queries) => prepareSchema(queries, schema));
    const hints =
      options.listen === false
        ? undefined
        : await listen({ client: config, channel, node, tell }).catch((error: unknown) => {
            throw named(error);
          });
    return {
      read: (work) => (closed ? Promise.reject(new Refusal('store_unavailable')) : work(anyClient)),
      write,
      onHint(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      async close() {
        if (closed) return;
        closed = true;
        await hints?.close();
        await pool.end();
      },
    };
  } catch (error) {
    closed = true;
    await pool.end().catch(() => undefined);
    throw error;
  }
}

/** A transaction that had failed answers COMMIT with ROLLBACK and no error. */
async function commit(client: PoolClient): Promise<void> {
  let command: string;
  try {
    ({ command } = await client.query('COMMIT'));
  } catch (error) {
    throw named(error);
  }
  if (command !== 'COMMIT') throw new Error('a failed statement was passed over: nothing was committed');
}

/** Schema, clock and tables, under a lock of their own. */
async function prepareSchema(queries: Queries, schema: string): Promise<void> {
  await queries.get(`SELECT pg_advisory_xact_lock(hashtext('keyturn'), hashtext(?))`, schema);
  const there = await queries.get(`SELECT 1 AS one FROM pg_namespace WHERE nspname = ?`, schema);
  if (there === undefined) await queries.run(`CREATE SCHEMA "${schema}"`);
  const clock = await queries.get<{ oid: string | null }>(
    `SELECT to_regprocedure(?)::text AS oid`,
    `"${schema}".keyturn_now()`,
  );
  if (clock?.oid == null) {
    // Volatile: read anew for every row, so that time spent waiting for a lock counts (R4).
    await queries.run(
      `CREATE FUNCTION "${schema}".keyturn_now() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
       AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$`,
    );
  }
  await migrate(queries, 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY');
  // An unlogged table is emptied by a crash of the server; the vault's rows are nobody's to lose (R20).
  const unlogged = await queries.all<{ relname: string }>(
    `SELECT relname FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?)
       AND relkind = 'r' AND relpersistence <> 'p' ORDER BY relname`,
    schema,
  );
  if (unlogged.length > 0) {
    throw new Refusal('configuration_invalid', {
      message: `ledger.postgres: tables that a crash empties (unlogged): ${unlogged.map((row) => row.relname).join(', ')}`,
    });
  }
}
