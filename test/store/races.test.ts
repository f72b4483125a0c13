/** Two things at once: whatever the order, a task ends once, waits only for what is missing, and is never too late. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import pg from 'pg';
import { openLedger } from '../../src/store/ledger.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import {
  ALICE,
  CLIENT,
  LEASE_MS,
  WAIT_MS,
  active,
  claim,
  claimed,
  connection,
  created,
  exchanged,
  fresh,
  grant,
  need,
} from '../support/ledger-records.ts';
import { onEveryEngine, type Rig } from '../support/ledgers.ts';
import { openPostgresServer, type PostgresServer } from '../support/postgres.ts';

/** Runs numbered rounds, some at a time, so that their transactions meet. */
async function rounds(many: number, atOnce: number, round: (n: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < many; from += atOnce) {
    const size = Math.min(atOnce, many - from);
    await Promise.all(Array.from({ length: size }, (_, index) => round(from + index)));
  }
}

const pair = async <A, B>(swap: boolean, a: () => Promise<A>, b: () => Promise<B>): Promise<[A, B]> => {
  if (swap) {
    const second = b();
    return [await a(), await second];
  }
  return Promise.all([a(), b()]);
};

async function endsOf(rig: Rig): Promise<number[]> {
  const rows = await rig.rows<{ many: number }>(
    `SELECT count(*) AS many FROM audit WHERE event = 'task.ended' GROUP BY task_id`,
  );
  return rows.map((row) => Number(row.many));
}

onEveryEngine(({ rig: open }) => {
  it('a stop that meets a new token set never waits for a connection that has it (300 rounds)', async () => {
    const rig = await open();
    const other = await rig.node();
    const kinds = new Set<string>();
    await rounds(300, 10, async (n) => {
      const owner = `owner-${n}`;
      const mine = await active(rig.ledger, owner);
      const task = await created(rig.ledger, { owner });
      const held = await soleClaim(rig, task.id);
      const [stopped] = await pair(
        n % 2 === 0,
        () =>
          rig.ledger.stopTask({
            taskId: held.id,
            term: held.term,
            needs: [need({ connectionId: mine.id, judgedGeneration: 1 })],
            waitMs: WAIT_MS,
            statusMessage: '.',
          }),
        () => other.ledger.commitRefresh({ connectionId: mine.id, generation: 1, grant: grant() }),
      );
      kinds.add(stopped.kind);
      expect((await rig.ledger.readTask(held.id))?.task.status).toBe('working');
    });
    const stuck = await rig.rows(`SELECT id FROM tasks WHERE status = 'input_required'`);
    expect(stuck).toEqual([]);
    expect([...kinds].every((kind) => kind === 'stopped' || kind === 'go on')).toBe(true);
  });

  it('five hundred cancels against grants leave one state each', async () => {
    const rig = await open();
    const other = await rig.node();
    await rounds(500, 10, async (n) => {
      const owner = `owner-${n}`;
      const { task, question } = await soleWaiting(rig, owner);
      const { stateHash, sealed } = await exchanged(rig.ledger, question);
      const [cancelled, granted] = await pair(
        n % 2 === 0,
        () => rig.ledger.cancelTask(owner, task.id, '.'),
        () => other.ledger.commitGrant({ stateHash, grant: sealed, again: null }),
      );
      // A task that a grant woke first may still be cancelled; one that was cancelled is never woken.
      expect(cancelled.won).toBe(true);
      expect(granted.kind).toBe('granted');
      expect((await rig.ledger.readTask(task.id))?.task).toMatchObject({
        status: 'cancelled',
        dueAtMs: null,
      });
    });
    expect(await endsOf(rig)).toEqual(Array.from({ length: 500 }, () => 1));
  });

  it('five hundred cancels against failures and refresh commits leave one state each', async () => {
    const rig = await open();
    const other = await rig.node();
    await rounds(500, 10, async (n) => {
      const owner = `owner-${n}`;
      if (n % 2 === 0) {
        const task = await created(rig.ledger, { owner });
        const held = await soleClaim(rig, task.id);
        const [a, b] = await pair(
          n % 4 === 0,
          () => rig.ledger.cancelTask(owner, held.id, '.'),
          () =>
            other.ledger.finishTask({
              taskId: held.id,
              term: held.term,
              outcome: { kind: 'error', code: 1, message: 'No.', reason: 'protocol', facts: {} },
              statusMessage: '.',
            }),
        );
        expect(Number(a.won) + Number(b.won)).toBe(1);
        const { status } = (await rig.ledger.readTask(held.id))?.task ?? {};
        expect(status).toBe(a.won ? 'cancelled' : 'failed');
        return;
      }
      const { task, access } = await soleWaiting(rig, owner);
      await rig.ledger.approveClient(owner, access.id, CLIENT);
      const [cancelled, refreshed] = await pair(
        n % 4 === 1,
        () => rig.ledger.cancelTask(owner, task.id, '.'),
        () => other.ledger.commitRefresh({ connectionId: access.id, generation: 0, grant: grant() }),
      );
      expect(cancelled.won && refreshed.won).toBe(true);
      expect((await rig.ledger.readTask(task.id))?.task).toMatchObject({
        status: 'cancelled',
        dueAtMs: null,
      });
    });
    expect(await endsOf(rig)).toEqual(Array.from({ length: 500 }, () => 1));
  });

  it('answers, re-asks, cancels and grants of one task at once leave one end and no deadlock', async () => {
    const rig = await open();
    const other = await rig.node();
    await rounds(60, 6, async (n) => {
      const owner = `owner-${n}`;
      const { task, question, access } = await soleWaiting(rig, owner);
      const accept = new Map([['github', { action: 'accept', content: undefined }]]);
      const { stateHash, sealed } = await exchanged(rig.ledger, question);
      await Promise.all([
        rig.ledger.answerTask(owner, task.id, accept),
        other.ledger.reask(question.id, {
          id: fresh('ask'),
          link: { handleHash: fresh('h'), kid: 'k' },
          message: '.',
        }),
        rig.ledger.commitGrant({ stateHash, grant: sealed, again: null }),
        other.ledger.approveClient(owner, access.id, 'client-2'),
        rig.ledger.sweepSatisfied(10),
        other.ledger.cancelTask(owner, task.id, '.'),
      ]);
      expect((await rig.ledger.readTask(task.id))?.task.status).toBe('cancelled');
      const openQuestions = await rig.rows(
        `SELECT id FROM elicitations WHERE task_id = ? AND finished_at IS NULL`,
        task.id,
      );
      expect(openQuestions).toEqual([]);
    });
  });
});

/** Claims one task of many rounds, whoever else claims at the same time. */
async function soleClaim(rig: Rig, taskId: string) {
  const row = await rig.engine.write((queries) =>
    queries.get<{ id: string; term: number }>(
      `UPDATE tasks SET term = term + 1, holder = 'w', due_at = NULL, lease_until = ? WHERE id = ? RETURNING id, term`,
      rig.nowMs() + LEASE_MS,
      taskId,
    ),
  );
  if (row === undefined) throw new Error('no such task');
  return row;
}

async function soleWaiting(rig: Rig, owner: string) {
  const task = await created(rig.ledger, { owner });
  const held = await soleClaim(rig, task.id);
  const access = await connection(rig.ledger, owner);
  const stopped = await rig.ledger.stopTask({
    taskId: held.id,
    term: held.term,
    needs: [need({ connectionId: access.id, judgedGeneration: access.generation })],
    waitMs: WAIT_MS,
    statusMessage: '.',
  });
  if (stopped.kind !== 'stopped') throw new Error(stopped.kind);
  const [question] = stopped.asked;
  if (question === undefined) throw new Error('nothing was asked');
  return { task: stopped.task, question, access };
}

describe('on PostgreSQL, a write that waited for its row until the time was over', () => {
  let server: PostgresServer;
  let ledgers = 0;
  beforeAll(async () => {
    server = await openPostgresServer();
  });
  afterAll(() => server.stop());

  /** Opens a ledger on the real clock, and a session that can hold rows of it. */
  async function withHolder(
    work: (
      ledger: ReturnType<typeof openLedger>,
      hold: (sql: string, id: string) => Promise<() => Promise<void>>,
    ) => Promise<void>,
  ): Promise<void> {
    const schema = `held_${process.pid}_${(ledgers += 1)}`;
    const engine = await openPostgres({ connectionString: server.connectionString, schema, listen: false });
    const holder = new pg.Client({ connectionString: server.connectionString.reveal() });
    await holder.connect();
    try {
      await work(openLedger(engine), async (sql, id) => {
        await holder.query('BEGIN');
        await holder.query(`SET LOCAL search_path = ${schema}`);
        await holder.query(sql, [id]);
        return async () => void (await holder.query('COMMIT'));
      });
    } finally {
      await holder.end();
      await engine.close();
    }
  }

  const past = async (ledger: ReturnType<typeof openLedger>, untilMs: number) => {
    while ((await ledger.nowMs()) <= untilMs) await new Promise((tick) => setTimeout(tick, 10));
  };

  const HOLD_TASK = 'SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE';

  const workerWrites = {
    renew: (ledger, task) => ledger.renewClaim({ ...task, leaseMs: LEASE_MS }),
    checkpoint: (ledger, task) => ledger.saveCheckpoint({ ...task, leaseMs: LEASE_MS, checkpoint: 1 }),
    finish: (ledger, task) =>
      ledger.finishTask({ ...task, outcome: { kind: 'result', result: 1 }, statusMessage: '.' }),
    park: (ledger, task) => ledger.parkTask({ ...task, delayMs: 0, why: 'timer' }),
    stop: async (ledger, task) => {
      const access = await connection(ledger);
      const needs = [need({ connectionId: access.id })];
      const stopped = await ledger.stopTask({ ...task, needs, waitMs: WAIT_MS, statusMessage: '.' });
      return { won: stopped.kind === 'stopped' };
    },
  } satisfies Record<
    string,
    (
      ledger: ReturnType<typeof openLedger>,
      task: { taskId: string; term: number },
    ) => Promise<{ won: boolean }>
  >;

  it.each(Object.entries(workerWrites))('is refused: %s', async (_, write) => {
    await withHolder(async (ledger, hold) => {
      const { id } = await created(ledger);
      const [task] = await ledger.claimTasks({ holder: 'w', leaseMs: 600, limit: 1, perOwner: 1 });
      if (task === undefined) throw new Error('not claimed');
      const release = await hold(HOLD_TASK, id);
      const written = write(ledger, { taskId: id, term: task.term });
      await past(ledger, task.leaseUntilMs ?? 0);
      await release();
      expect((await written).won).toBe(false);
      expect((await ledger.readTask(id))?.task).toEqual(task);
    });
  });

  it.each(['the connection', 'the task'])('is refused: a grant that waited for %s', async (what) => {
    await withHolder(async (ledger, hold) => {
      const task = await claimed(ledger);
      const access = await connection(ledger);
      const stopped = await ledger.stopTask({
        taskId: task.id,
        term: task.term,
        needs: [need({ connectionId: access.id, judgedGeneration: 0 })],
        waitMs: 1_500,
        statusMessage: '.',
      });
      if (stopped.kind !== 'stopped' || stopped.asked[0] === undefined) throw new Error(stopped.kind);
      const { stateHash, sealed } = await exchanged(ledger, stopped.asked[0]);
      const release =
        what === 'the task'
          ? await hold(HOLD_TASK, task.id)
          : await hold('SELECT 1 FROM connections WHERE id = $1 FOR UPDATE', access.id);
      const granted = ledger.commitGrant({ stateHash, grant: sealed, again: null });
      await past(ledger, stopped.task.deadlineMs ?? 0);
      await release();
      expect(await granted).toMatchObject({ kind: 'granted', resumed: [], ownTaskOver: true });
      expect((await ledger.readTask(task.id))?.task).toMatchObject({
        status: 'failed',
        outcome: { code: 4011 },
      });
    });
  });

  it.each(['accept', 'decline'])('is refused: an answer to %s', async (action) => {
    await withHolder(async (ledger, hold) => {
      const { id } = await created(ledger);
      const task = await claim(ledger, id);
      const access = await connection(ledger);
      const stopped = await ledger.stopTask({
        taskId: task.id,
        term: task.term,
        needs: [need({ connectionId: access.id, judgedGeneration: 0 })],
        waitMs: 1_000,
        statusMessage: '.',
      });
      if (stopped.kind !== 'stopped') throw new Error(stopped.kind);
      const release = await hold(HOLD_TASK, id);
      const answered = ledger.answerTask(ALICE, id, new Map([['github', { action, content: undefined }]]));
      const cancelled = ledger.cancelTask(ALICE, id, '.');
      await past(ledger, stopped.task.deadlineMs ?? 0);
      await release();
      expect((await answered)?.taken).toEqual([]);
      expect((await cancelled).won).toBe(false);
    });
  });
});
