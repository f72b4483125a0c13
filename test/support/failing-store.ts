/** A database that fails named statements for as long as a test wants. Nothing of the failed transaction stays. */
import { Refusal } from '../../src/errors.ts';
import type { Queries, SqlEngine, SqlValue } from '../../src/store/sql.ts';

/** The switch of a failing store. */
export interface Failure {
  /** Statements that fail; none while null. */
  statement: RegExp | null;
  /** How often one has failed. */
  failed: number;
  /** How many failures are left; for good by default. */
  times: number;
}

export function failure(): Failure {
  return { statement: null, failed: 0, times: Infinity };
}

/** Wraps an engine. */
export function failingStore(engine: SqlEngine, failing: Failure): SqlEngine {
  function check(sql: string): void {
    if (failing.statement?.test(sql) !== true || failing.times <= 0) return;
    failing.failed += 1;
    failing.times -= 1;
    throw new Refusal('store_unavailable', { facts: { test: true } });
  }
  function guarded(queries: Queries): Queries {
    return {
      lock: queries.lock,
      lockFree: queries.lockFree,
      nowMs: () => queries.nowMs(),
      hint: (hint) => queries.hint(hint),
      async all<Row>(sql: string, ...values: SqlValue[]) {
        check(sql);
        return queries.all<Row>(sql, ...values);
      },
      async get<Row>(sql: string, ...values: SqlValue[]) {
        check(sql);
        return queries.get<Row>(sql, ...values);
      },
      async run(sql, ...values) {
        check(sql);
        return queries.run(sql, ...values);
      },
    };
  }
  return {
    ...engine,
    read: (work) => engine.read((queries) => work(guarded(queries))),
    write: (work) => engine.write((queries) => work(guarded(queries))),
  };
}
