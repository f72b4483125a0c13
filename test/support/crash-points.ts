/**
 * Names for the writes of the ledger, told by what their statements do, so that the product needs no marks for it. A
 * point is a name and a side of the commit: before it the write must never have happened, after it for good.
 */
import type { Queries, SqlEngine, SqlValue } from '../../src/store/sql.ts';

/** A write is known by one of its statements. */
const WRITES = {
  create: /INSERT INTO tasks/,
  claim: /SET term = term \+ 1, holder = \?/,
  checkpoint: /SET checkpoint = \?/,
  record: /INSERT INTO records/,
  stop: /SET status = 'input_required'/,
  ask: /INSERT INTO elicitations/,
  answer: /UPDATE elicitations SET answered_at/,
  connection: /INSERT INTO connections/,
  attempt: /INSERT INTO attempts/,
  take: /SET phase = 'exchanging'/,
  exchanged: /SET phase = 'exchanged'/,
  seal: /INSERT INTO vault_records/,
  approve: /INSERT INTO approvals/,
  swing: /generation = generation \+ 1/,
  satisfied: /UPDATE elicitations SET finished_at = keyturn_now\(\), outcome = 'granted'/,
  resume: /SET status = 'working'/,
  settle: /UPDATE attempts SET phase = \?/,
  intent: /UPDATE connections SET intent = \?/,
  refusedRefresh: /failures = failures \+ 1/,
  orphan: /INSERT INTO vault_orphans/,
  finish: /UPDATE tasks SET status = \?/,
  chain: /UPDATE audit SET link/,
} as const satisfies Record<string, RegExp>;

export type WriteName = keyof typeof WRITES;

/** Where the power is cut. */
export interface CrashPoint {
  readonly write: WriteName;
  readonly side: 'before' | 'after';
  /** Which write of this name, from 1. */
  readonly turn: number;
}

/** Writes that mean something else the next time: the seal of a refresh, the second sign-in, a cancel. */
const LATER: readonly (readonly [WriteName, number])[] = [
  ['create', 2],
  ['claim', 2],
  ['claim', 3],
  ['checkpoint', 4],
  ['record', 9],
  ['stop', 2],
  ['ask', 2],
  ['attempt', 2],
  ['take', 2],
  ['exchanged', 2],
  ['seal', 2],
  ['seal', 3],
  ['swing', 2],
  ['swing', 3],
  ['resume', 2],
  ['intent', 2],
  ['orphan', 2],
  ['finish', 2],
];

/** Every write, on both sides of its commit. */
export const CRASH_POINTS: readonly CrashPoint[] = [
  ...(Object.keys(WRITES) as WriteName[]).map((write) => [write, 1] as const),
  ...LATER,
].flatMap(([write, turn]) => [
  { write, side: 'before', turn },
  { write, side: 'after', turn },
]);

/** An engine that ends this process, as a power cut does, at a point. */
export function cutPower(engine: SqlEngine, point: CrashPoint): SqlEngine {
  const pattern = WRITES[point.write];
  let turns = 0;
  return {
    ...engine,
    async write(work) {
      let met = false;
      const result = await engine.write(async (queries) => {
        const note = (sql: string): void => {
          met ||= pattern.test(sql);
        };
        const done = await work(watched(queries, note));
        if (met) turns += 1;
        if (met && turns === point.turn && point.side === 'before') process.kill(process.pid, 'SIGKILL');
        return done;
      });
      if (met && turns === point.turn) process.kill(process.pid, 'SIGKILL');
      return result;
    },
  };
}

function watched(queries: Queries, note: (sql: string) => void): Queries {
  return {
    lock: queries.lock,
    lockFree: queries.lockFree,
    all: <Row>(sql: string, ...values: SqlValue[]) => {
      note(sql);
      return queries.all<Row>(sql, ...values);
    },
    get: <Row>(sql: string, ...values: SqlValue[]) => {
      note(sql);
      return queries.get<Row>(sql, ...values);
    },
    run: (sql, ...values) => {
      note(sql);
      return queries.run(sql, ...values);
    },
    nowMs: () => queries.nowMs(),
    hint: (hint) => queries.hint(hint),
  };
}
