/** A database whose statements a test counts. */
import type { Queries, SqlEngine, SqlValue } from '../../src/store/sql.ts';

/** Wraps an engine; `note` is told of every statement. */
export function countingStore(engine: SqlEngine, note: (sql: string) => void): SqlEngine {
  const counted = (queries: Queries): Queries => ({
    lock: queries.lock,
    lockFree: queries.lockFree,
    all: <Row>(sql: string, ...values: SqlValue[]) => (note(sql), queries.all<Row>(sql, ...values)),
    get: <Row>(sql: string, ...values: SqlValue[]) => (note(sql), queries.get<Row>(sql, ...values)),
    run: (sql, ...values) => (note(sql), queries.run(sql, ...values)),
    nowMs: () => queries.nowMs(),
    hint: (hint) => queries.hint(hint),
  });
  return {
    ...engine,
    read: (work) => engine.read((queries) => work(counted(queries))),
    write: (work) => engine.write((queries) => work(counted(queries))),
  };
}
