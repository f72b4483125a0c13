/** With a hundred thousand rows, no statement of the ledger reads a whole table; on every engine. */
import { expect, it } from 'vitest';
import { openLedger } from '../../src/store/ledger.ts';
import type { Queries, SqlEngine, SqlValue } from '../../src/store/sql.ts';
import { fillWaiting } from '../support/bulk-ledger.ts';
import {
  ALICE,
  BOB,
  LEASE_MS,
  active,
  created,
  exchanged,
  fresh,
  grant,
  pressed,
  waiting,
} from '../support/ledger-records.ts';
import { onEveryEngine } from '../support/ledgers.ts';

/** Tables that grow with use. */
const LARGE = 'tasks|elicitations|attempts';

/** An engine that asks for the plan of every statement before it runs it. */
function explaining(engine: SqlEngine, plans: Map<string, string>, prefix: string): SqlEngine {
  const wrap = (queries: Queries): Queries => {
    const explained = async (sql: string, values: SqlValue[]) => {
      if (plans.has(sql) || !/^\s*(SELECT|UPDATE|DELETE|INSERT|WITH)/i.test(sql)) return;
      const rows = await queries.all<Record<string, unknown>>(`${prefix} ${sql}`, ...values);
      plans.set(sql, rows.map((row) => String(row['detail'] ?? row['QUERY PLAN'])).join('\n'));
    };
    return {
      lock: queries.lock,
      lockFree: queries.lockFree,
      nowMs: () => queries.nowMs(),
      hint: (hint) => queries.hint(hint),
      all: async (sql, ...values) => (await explained(sql, values), queries.all(sql, ...values)),
      get: async (sql, ...values) => (await explained(sql, values), queries.get(sql, ...values)),
      run: async (sql, ...values) => (await explained(sql, values), queries.run(sql, ...values)),
    };
  };
  return {
    ...engine,
    read: (work) => engine.read((queries) => work(wrap(queries))),
    write: (work) => engine.write((queries) => work(wrap(queries))),
  };
}

onEveryEngine(({ engine: kind, rig: open }) => {
  it('every statement of claims, reads, writes and sweeps uses an index', async () => {
    const rig = await open();
    await fillWaiting(rig.engine, 100_000, rig.nowMs());
    if (kind === 'PostgreSQL') {
      for (const table of LARGE.split('|')) await rig.run(`ANALYZE ${table}`);
    }
    const plans = new Map<string, string>();
    const prefix = kind === 'SQLite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
    const ledger = openLedger(explaining(rig.engine, plans, prefix));
    const idempotency = { kind: 'implicit' as const, key: 'implicit:k', digest: 'd' };

    const claimOne = async () => {
      const [task] = await ledger.claimTasks({ holder: 'w', leaseMs: LEASE_MS, limit: 10, perOwner: 10 });
      if (task === undefined) throw new Error('nothing was due');
      return task;
    };
    await created(ledger, { hostLeaseMs: 3_600_000, idempotency });
    const task = await claimOne();
    const held = { taskId: task.id, term: task.term };
    await ledger.renewClaim({ ...held, leaseMs: LEASE_MS, progress: { done: 1 } });
    await ledger.renewClaim({ ...held, leaseMs: LEASE_MS });
    await ledger.renewHostLease(task.id);
    const records = { collection: 'pages', rows: [{ id: '1', body: 1 }] };
    await ledger.saveCheckpoint({ ...held, leaseMs: LEASE_MS, checkpoint: 1, records });
    await ledger.readRecords('pages', ALICE, { afterId: '', limit: 10 });
    await ledger.parkTask({ ...held, delayMs: 0, why: 'trouble' });
    const again = await claimOne();
    await ledger.finishTask({
      taskId: again.id,
      term: again.term,
      outcome: { kind: 'result', result: 1 },
      statusMessage: '.',
    });
    await ledger.markDelivered(task.id);
    await ledger.readTask('bulk-7');
    await ledger.listTasks('owner-3', 'client-1', { after: { createdAtMs: 1, id: 'x' }, limit: 20 });
    await ledger.countTasks();
    await ledger.nextDue();
    await ledger.readAnswers('bulk-7');

    const wait = await waiting(ledger);
    await ledger.findLink('bulk-hash-7');
    await ledger.answerTask(ALICE, wait.task.id, new Map([['github', { action: 'accept', content: null }]]));
    await ledger.dueReasks(10);
    await rig.at(rig.nowMs() + 300_000);
    await ledger.reask(wait.question.id, {
      id: fresh('ask'),
      link: { handleHash: fresh('hash'), kid: 'k1' },
      message: '.',
    });
    await pressed(ledger, wait.question);
    const { stateHash, sealed } = await exchanged(ledger, wait.question);
    await ledger.staleAttempts(10);
    await ledger.commitGrant({ stateHash, grant: sealed, again: null });
    const access = await active(ledger, BOB);
    await ledger.commitRefresh({ connectionId: access.id, generation: access.generation, grant: grant() });
    await ledger.listConnections(ALICE);
    await ledger.revokeConnection(access.id, 'person');
    await ledger.referencedKids();
    await ledger.chainAudit(100);
    await ledger.readAudit(0, 10);

    await ledger.cancelTask(ALICE, (await created(ledger)).id, '.');
    await created(ledger);
    await ledger.claimTasks({ holder: 'w', leaseMs: 1, limit: 10, perOwner: 10 });
    await rig.at(rig.nowMs() + 1_000);
    await ledger.sweepLeases(10);
    await ledger.sweepSatisfied(10);
    await rig.at(rig.nowMs() + 3_600_000);
    expect((await ledger.sweepLapsed(10)).length).toBeGreaterThan(0);
    await rig.at(rig.nowMs() + 10 * 24 * 3_600_000);
    expect((await ledger.sweepExpired(10)).length).toBeGreaterThan(0);

    expect(plans.size).toBeGreaterThan(60);
    // A partial index holds what its question is about, so that reading all of it is fine; the list of tasks is not one.
    const whole =
      kind === 'SQLite'
        ? new RegExp(
            `^SCAN (?:${LARGE})$|USING (?:COVERING )?INDEX (?:tasks_list|tasks_deadline|elicitations_key)$`,
            'm',
          )
        : new RegExp(`Seq Scan on (?:${LARGE})\\b`);
    const faults = [...plans].filter(([, plan]) => whole.test(plan));
    expect(faults).toEqual([]);
  });
});
