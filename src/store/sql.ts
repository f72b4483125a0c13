/**
 * The little that the ledger needs of a SQL engine. Statements are written once, in the SQL that SQLite and
 * PostgreSQL share: `?` placeholders, times as integers, JSON as text, `keyturn_now()` for the ledger's clock.
 *
 * `keyturn_now()` is read when its row is, so that time spent waiting for a lock counts (R4).
 */

/** What goes into a statement. */
export type SqlValue = string | number | null;

/** Statements within one transaction. */
export interface Queries {
  all<Row>(sql: string, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(sql: string, ...values: SqlValue[]): Promise<Row | undefined>;
  /** @returns how many rows were changed. */
  run(sql: string, ...values: SqlValue[]): Promise<number>;
  /** Appended to a SELECT that locks its rows until the end; empty where a transaction holds the whole file. */
  readonly lock: string;
  /** The same, passing over rows that others hold. */
  readonly lockFree: string;
  /** The ledger's clock, in milliseconds, read now. */
  nowMs(): Promise<number>;
  /** Told to every node once the transaction has committed; may be lost or doubled without harm. */
  hint(hint: Hint): Promise<void>;
}

/** A nudge between nodes. */
export type Hint =
  /** A task changed: pollers and streams look again. */
  | { readonly kind: 'task'; readonly taskId: string }
  /** Some task is due: dispatchers look for work. */
  | { readonly kind: 'due' }
  /** A connection changed: cached tokens are stale. */
  | { readonly kind: 'connection'; readonly connectionId: string }
  /** Hints may have been missed: look at everything. */
  | { readonly kind: 'resync' };

/** A SQL engine that the ledger runs on. */
export interface SqlEngine {
  /** Reads without locks, each statement on the latest commit. */
  read<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /** One transaction. It is committed durably before the promise resolves, or not at all. */
  write<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  onHint(listener: (hint: Hint) => void): () => void;
  close(): Promise<void>;
}
