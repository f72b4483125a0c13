/**
 * SQLite through `node:sqlite`: WAL, `synchronous=FULL`, one connection that writes and one that reads committed
 * state. Nothing to install or start. Several processes may share the file; each write then waits its turn without
 * blocking the event loop for longer than a few milliseconds at a time.
 *
 * The ledger's clock here is a persisted high-water mark (R26): it never runs backwards, not over a restart and not
 * between processes. Wall-clock jumps back are bridged by the monotonic clock; a suspended machine catches up.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from '../errors.ts';
import { migrate } from './schema.ts';
import type { Hint, Queries, SqlEngine, SqlValue } from './sql.ts';

/** How to open the file. */
export interface SqliteOptions {
  /** Path of the file, or `:memory:`-like names are refused: a ledger is durable. */
  readonly file: string;
  /** Wall clock; tests turn it. */
  readonly wallMs?: () => number;
  /** Monotonic clock; tests turn it. */
  readonly monotonicMs?: () => number;
  /** How long a write waits for other processes, in milliseconds. */
  readonly busyForMs?: number;
}

/** A clock that never goes back: the wall, but at least the mark and at least the time that has passed since. */
class HighWaterClock {
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  #markMs = 0;
  #markedAt: number;

  constructor(wallMs: () => number, monotonicMs: () => number) {
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    this.#markedAt = monotonicMs();
  }

  nowMs(): number {
    const elapsed = this.#monotonicMs();
    const now = Math.floor(Math.max(this.#wallMs(), this.#markMs + (elapsed - this.#markedAt)));
    if (now > this.#markMs) {
      this.#markMs = now;
      this.#markedAt = elapsed;
    }
    return this.#markMs;
  }

  /** Takes over a mark that another process, or this one before a restart, has persisted. */
  raise(markMs: number): void {
    if (markMs > this.nowMs()) {
      this.#markMs = markMs;
      this.#markedAt = this.#monotonicMs();
    }
  }
}

/** Longest run of writes without a turn of the event loop, in milliseconds. */
const BREATHE_EVERY_MS = 4;

const BUSY = new Set([5, 6, 261, 262, 517, 773]);

function errorCode(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined;
}

/** Names a failure of the file for operators; anything that is not the file's fault stays a bug. */
function named(error: unknown): unknown {
  const code = errorCode(error);
  if (code === undefined) return error;
  const primary = code & 0xff;
  if (primary === 11 || primary === 26) return new Refusal('store_corrupt', { cause: error });
  if ([5, 6, 8, 10, 13, 14].includes(primary)) {
    return new Refusal('store_unavailable', { cause: error, facts: { sqlite: code } });
  }
  return error;
}

class Connection implements Queries {
  readonly db: DatabaseSync;
  readonly lock = '';
  readonly lockFree = '';
  readonly #clock: HighWaterClock;
  readonly #statements = new Map<string, StatementSync>();
  hints: Hint[] = [];

  constructor(db: DatabaseSync, clock: HighWaterClock) {
    this.db = db;
    this.#clock = clock;
    db.function('keyturn_now', { deterministic: false, useBigIntArguments: false }, () => clock.nowMs());
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  // Not `async`: these run synchronously and would only pay for extra promises.
  all<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]> {
    return settle(() => this.#prepare(sql).all(...values) as Row[]);
  }

  get<Row>(sql: string, ...values: SqlValue[]): Promise<Row | undefined> {
    return settle(() => this.#prepare(sql).get(...values) as Row | undefined);
  }

  run(sql: string, ...values: SqlValue[]): Promise<number> {
    return settle(() => Number(this.#prepare(sql).run(...values).changes));
  }

  nowMs(): Promise<number> {
    return Promise.resolve(this.#clock.nowMs());
  }

  hint(hint: Hint): Promise<void> {
    this.hints.push(hint);
    return Promise.resolve();
  }
}

function settle<T>(work: () => T): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(named(error) as Error);
  }
}

/**
 * Opens, and where needed creates, the ledger file.
 *
 * @throws Refusal `store_unavailable`, `store_corrupt`, `store_newer`.
 */
export async function openSqlite(options: SqliteOptions): Promise<SqlEngine> {
  if (options.file === '' || options.file.startsWith(':')) {
    throw new Refusal('configuration_invalid', {
      message: 'ledger.file: must be a path; a ledger is durable',
    });
  }
  const wallMs = options.wallMs ?? (() => Date.now());
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const busyForMs = options.busyForMs ?? 10_000;
  const clock = new HighWaterClock(wallMs, monotonicMs);
  const listeners = new Set<(hint: Hint) => void>();
  let writer: Connection;
  let reader: Connection;
  const opened: DatabaseSync[] = [];
  try {
    const connect = () => {
      const db = new DatabaseSync(options.file, { timeout: 2_000 });
      opened.push(db);
      return new Connection(db, clock);
    };
    writer = connect();
    writer.db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8000');
    reader = connect();
    reader.db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -8000');
  } catch (error) {
    opened.forEach((db) => db.close());
    throw named(error);
  }
  // From here on a busy file is waited for by the loop below, which lets other work go on.
  writer.db.exec('PRAGMA busy_timeout = 5');
  let turn: Promise<unknown> = Promise.resolve();
  let closed = false;

  async function begin(): Promise<void> {
    const giveUpAt = monotonicMs() + busyForMs;
    for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 40)) {
      try {
        writer.db.exec('BEGIN IMMEDIATE');
        return;
      } catch (error) {
        if (!BUSY.has(errorCode(error) ?? 0) || monotonicMs() > giveUpAt) throw named(error);
      }
      await sleep(waitMs * (0.5 + Math.random()));
    }
  }

  /** Takes over the mark that any process has persisted: what is over for one of them is over for all. */
  async function raiseClock(connection: Connection): Promise<void> {
    const mark = await connection.get<{ value: string }>(`SELECT value FROM meta WHERE name = 'clock'`);
    clock.raise(Number(mark?.value ?? '0'));
  }

  async function transact<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    if (closed) throw new Refusal('store_unavailable');
    await begin();
    writer.hints = [];
    let result: T;
    try {
      await raiseClock(writer);
      result = await work(writer);
      await writer.run(`UPDATE meta SET value = CAST(keyturn_now() AS TEXT) WHERE name = 'clock'`);
      writer.db.exec('COMMIT');
    } catch (error) {
      if (writer.db.isTransaction) writer.db.exec('ROLLBACK');
      throw named(error);
    }
    const hints = writer.hints;
    // After the commit and after the caller's own continuation: a listener never delays a write.
    if (hints.length > 0)
      queueMicrotask(() => hints.forEach((hint) => listeners.forEach((tell) => tell(hint))));
    await breathe();
    return result;
  }

  // Everything above runs synchronously, so that a caller that only ever awaits writes would hold the event loop for
  // good: sockets, timers and cancels would wait for it. Now and then a write lets them have their turn.
  let breathedAt = performance.now();
  async function breathe(): Promise<void> {
    if (performance.now() - breathedAt < BREATHE_EVERY_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    breathedAt = performance.now();
  }

  function write<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    const mine = turn.then(
      () => transact(work),
      () => transact(work),
    );
    turn = mine.catch(() => undefined);
    return mine;
  }

  try {
    await begin();
    await migrate(writer, 'INTEGER PRIMARY KEY AUTOINCREMENT');
    await writer.run(`INSERT INTO meta (name, value) VALUES ('clock', '0') ON CONFLICT (name) DO NOTHING`);
    await raiseClock(writer);
    writer.db.exec('COMMIT');
  } catch (error) {
    writer.db.close();
    reader.db.close();
    throw named(error);
  }

  // Commits of other processes show as a new data version of the writing connection; its own do not.
  let version = dataVersion(writer);
  const watch = setInterval(() => {
    try {
      const now = dataVersion(writer);
      if (now === version) return;
      version = now;
      listeners.forEach((tell) => tell({ kind: 'resync' }));
    } catch {
      // A file that cannot be read is reported by whoever needs it.
    }
  }, 250);
  watch.unref();

  return {
    async read(work) {
      if (closed) throw new Refusal('store_unavailable');
      await raiseClock(reader);
      return work(reader);
    },
    write,
    onHint(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      if (closed) return;
      clearInterval(watch);
      await turn;
      closed = true;
      reader.db.close();
      writer.db.close();
    },
  };
}

function dataVersion(connection: Connection): number {
  const row = connection.db.prepare('PRAGMA data_version').get() as { data_version: number };
  return row.data_version;
}
