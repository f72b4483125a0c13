/** Tasks in the ledger: created, claimed, held and ended, on every engine. */
import { describe, expect, it } from 'vitest';
import { argumentsDigest, explicitKey, implicitKey } from '../../src/task/idempotency.ts';
import { READ_BACK_MARGIN_MS } from '../../src/task/lifetime.ts';
import type { Outcome, Task } from '../../src/store/records.ts';
import {
  ALICE,
  BOB,
  LEASE_MS,
  LIMITS,
  claim,
  claimed,
  connection,
  created,
  fresh,
  need,
  newTask,
} from '../support/ledger-records.ts';
import { onEveryEngine, type Rig } from '../support/ledgers.ts';

const DONE: Outcome = { kind: 'result', result: { pages: 3 } };

const WRITES = {
  renew: (rig: Rig, task: Task) =>
    rig.ledger.renewClaim({ taskId: task.id, term: task.term, leaseMs: LEASE_MS }),
  checkpoint: (rig: Rig, task: Task) =>
    rig.ledger.saveCheckpoint({
      taskId: task.id,
      term: task.term,
      leaseMs: LEASE_MS,
      checkpoint: { page: 1 },
      records: { collection: 'pages', rows: [{ id: 'one', body: 1 }] },
    }),
  finish: (rig: Rig, task: Task) =>
    rig.ledger.finishTask({ taskId: task.id, term: task.term, outcome: DONE, statusMessage: 'Done.' }),
  park: (rig: Rig, task: Task) =>
    rig.ledger.parkTask({ taskId: task.id, term: task.term, delayMs: 1_000, why: 'timer' }),
  stop: async (rig: Rig, task: Task) => {
    const access = await connection(rig.ledger, task.owner);
    const stopped = await rig.ledger.stopTask({
      taskId: task.id,
      term: task.term,
      needs: [need({ connectionId: access.id })],
      waitMs: 60_000,
      statusMessage: 'A sign-in is needed.',
    });
    return { won: stopped.kind === 'stopped' };
  },
  'end as unknown': async (rig: Rig, task: Task) => ({
    won: await rig.ledger.failUnknownJob(task.id, task.term),
  }),
} as const;

onEveryEngine(({ rig: open }) => {
  describe('creating', () => {
    it('gives a task that is due at once and reads back as it was created', async () => {
      const rig = await open();
      const task = await created(rig.ledger, { args: { text: 'naïve \u0000 \ud83d\ude00' } });
      const view = await rig.ledger.readTask(task.id);
      expect(view?.task).toEqual(task);
      expect(view?.task).toMatchObject({
        status: 'working',
        term: 0,
        dueAtMs: rig.nowMs(),
        args: { text: 'naïve \u0000 \ud83d\ude00' },
      });
    });

    it('makes one task of fifty equal calls at once', async () => {
      const rig = await open();
      const other = await rig.node();
      const idempotency = { kind: 'explicit' as const, key: 'explicit:k', digest: argumentsDigest({}) };
      const creations = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          (index % 2 === 0 ? rig : other).ledger.createTask(newTask({ idempotency }), LIMITS),
        ),
      );
      expect(creations.filter((creation) => creation.kind === 'created')).toHaveLength(1);
      const ids = creations.map((creation) => ('task' in creation ? creation.task.id : creation.kind));
      expect(new Set(ids).size).toBe(1);
      expect(await rig.rows(`SELECT id FROM tasks`)).toHaveLength(1);
    });

    it('refuses a key that comes back with other arguments, and knows no key across owners, clients and tools', async () => {
      const rig = await open();
      const key = { kind: 'explicit' as const, key: 'explicit:k' };
      const idempotency = { ...key, digest: argumentsDigest({ a: 1 }) };
      await created(rig.ledger, { idempotency });
      const conflict = await rig.ledger.createTask(
        newTask({ idempotency: { ...key, digest: argumentsDigest({ a: 2 }) } }),
        LIMITS,
      );
      expect(conflict.kind).toBe('conflict');
      for (const over of [{ owner: BOB }, { clientId: 'client-2' }, { tool: 'export' }]) {
        const elsewhere = await rig.ledger.createTask(newTask({ ...over, idempotency }), LIMITS);
        expect(elsewhere.kind).toBe('created');
      }
    });

    it('knows an implicit key until the result was delivered', async () => {
      const rig = await open();
      const args = { from: 'here' };
      const idempotency = { ...implicitKey(args), digest: argumentsDigest(args) };
      const task = await claimed(rig.ledger, { idempotency });
      expect(await rig.ledger.markDelivered(task.id)).toBe(0);
      await WRITES.finish(rig, task);
      const again = await rig.ledger.createTask(newTask({ idempotency }), LIMITS);
      expect(again).toMatchObject({ kind: 'existing', task: { id: task.id, status: 'completed' } });
      await rig.ledger.markDelivered(task.id);
      expect((await rig.ledger.createTask(newTask({ idempotency }), LIMITS)).kind).toBe('created');
    });

    it('knows an explicit key until the lifetime of its task is over, delivered or not', async () => {
      const rig = await open();
      const key = explicitKey('mine');
      if (key === undefined) throw new Error('no key');
      const idempotency = { ...key, digest: argumentsDigest({}) };
      const task = await claimed(rig.ledger, { idempotency });
      await WRITES.finish(rig, task);
      await rig.ledger.markDelivered(task.id);
      const view = await rig.ledger.readTask(task.id);
      const endMs = (view?.task.createdAtMs ?? 0) + (view?.task.ttlMs ?? 0);
      await rig.at(endMs - 1);
      expect((await rig.ledger.createTask(newTask({ idempotency }), LIMITS)).kind).toBe('existing');
      await rig.at(endMs);
      expect((await rig.ledger.createTask(newTask({ idempotency }), LIMITS)).kind).toBe('created');
    });

    it('takes a key and an id with a NUL in them like any other', async () => {
      const rig = await open();
      const idempotency = { kind: 'explicit' as const, key: 'explicit:a\0b', digest: 'd' };
      const task = await created(rig.ledger, { idempotency });
      expect(await rig.ledger.createTask(newTask({ idempotency }), LIMITS)).toMatchObject({
        kind: 'existing',
        task: { id: task.id },
      });
      expect(await rig.ledger.readTask('no\0such')).toBeUndefined();
    });

    it('holds an owner to the limit of open tasks, and lets a blocked owner start nothing', async () => {
      const rig = await open();
      await created(rig.ledger);
      const task = await created(rig.ledger);
      expect(await rig.ledger.createTask(newTask(), { openPerOwner: 2 })).toEqual({ kind: 'limit', open: 2 });
      expect((await rig.ledger.createTask(newTask({ owner: BOB }), { openPerOwner: 2 })).kind).toBe(
        'created',
      );
      await rig.ledger.cancelTask(ALICE, task.id, 'Cancelled.');
      expect((await rig.ledger.createTask(newTask(), { openPerOwner: 2 })).kind).toBe('created');
      await rig.ledger.blockOwner(ALICE, true);
      expect((await rig.ledger.createTask(newTask(), LIMITS)).kind).toBe('blocked');
      await rig.ledger.blockOwner(ALICE, false);
      expect((await rig.ledger.createTask(newTask(), LIMITS)).kind).toBe('created');
    });
  });

  describe('a claim', () => {
    it('takes turns between owners, the one with the fewest running first', async () => {
      const rig = await open();
      for (let n = 0; n < 20; n += 1) await created(rig.ledger, { id: `a${n}`, owner: ALICE });
      await rig.at(rig.nowMs() + 1);
      for (let n = 0; n < 3; n += 1) await created(rig.ledger, { id: `b${n}`, owner: BOB });
      const ask = { holder: 'w', leaseMs: LEASE_MS, perOwner: 3 };
      const owners = async (limit: number) =>
        (await rig.ledger.claimTasks({ ...ask, limit })).map((task) => task.owner).toSorted();
      expect(await owners(2)).toEqual([ALICE, BOB]);
      expect(await owners(3)).toEqual([ALICE, ALICE, BOB].toSorted());
      // Three of Alice's run: no fourth, although seventeen are due.
      expect(await owners(10)).toEqual([BOB]);
      expect(await owners(10)).toEqual([]);
    });

    it('reaches an owner behind thousands of due tasks of others', async () => {
      const rig = await open();
      await rig.engine.write(async (queries) => {
        for (let from = 0; from < 6_000; from += 500) {
          await queries.run(
            `INSERT INTO tasks (id, owner, client_id, tool, args, status, created_at, updated_at, ttl_ms, term, rev,
               due_at, strikes, modes, interaction, on_cancel, is_open) VALUES ${Array.from(
                 { length: 500 },
                 (_, n) =>
                   `('bulk-${from + n}', 'crowd', 'c', 't', '{}', 'working', 0, 0, 1, 0, 1, ${n}, 0, '{}', 'never', 'cancel', 1)`,
               ).join(',')}`,
          );
        }
      });
      const task = await created(rig.ledger, { owner: BOB });
      const ask = { holder: 'w', leaseMs: LEASE_MS, limit: 10, perOwner: 2 };
      expect((await rig.ledger.claimTasks(ask)).map((one) => one.owner)).toEqual(['crowd', 'crowd']);
      // The crowd has what it may have: the next claim looks past all of it.
      expect((await rig.ledger.claimTasks(ask)).map((one) => one.id)).toEqual([task.id]);
    });

    it('never gives two claimers the same task', async () => {
      const rig = await open();
      const nodes = [rig, await rig.node(), await rig.node()];
      for (let n = 0; n < 60; n += 1) await created(rig.ledger, { owner: `owner-${n % 7}` });
      const taken: string[] = [];
      for (let round = 0; round < 20 && taken.length < 60; round += 1) {
        const claims = await Promise.all(
          nodes.map(({ ledger }, n) =>
            ledger.claimTasks({ holder: `w${n}`, leaseMs: LEASE_MS, limit: 4, perOwner: 100 }),
          ),
        );
        taken.push(...claims.flat().map((task) => task.id));
      }
      expect(taken).toHaveLength(60);
      expect(new Set(taken).size).toBe(60);
    });

    it('does not take what is due later', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      await WRITES.park(rig, task);
      await rig.at(rig.nowMs() + 999);
      expect(await rig.ledger.claimTasks({ holder: 'w', leaseMs: 1, limit: 9, perOwner: 9 })).toEqual([]);
      await rig.at(rig.nowMs() + 1);
      expect((await claim(rig.ledger, task.id)).term).toBe(task.term + 2);
    });

    it('moves the term at every change of hands', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      expect(task.term).toBe(1);
      await rig.at(rig.nowMs() + LEASE_MS);
      expect((await rig.ledger.sweepLeases(10)).due).toEqual([task.id]);
      const again = await claim(rig.ledger, task.id, 'worker-2');
      expect(again).toMatchObject({ term: 3, holder: 'worker-2' });
      expect(await WRITES.checkpoint(rig, task)).toEqual({ won: false });
    });
  });

  describe.each(Object.entries(WRITES))('the write to %s', (name, write) => {
    it('is taken up to the last millisecond of the lease', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      await rig.at(rig.nowMs() + LEASE_MS - 1);
      expect((await write(rig, task)).won).toBe(true);
    });

    it.each([0, 1])('is refused %i ms after the end of the lease, and touches no row', async (lateMs) => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      await rig.at(rig.nowMs() + LEASE_MS + lateMs);
      expect((await write(rig, task)).won).toBe(false);
      expect((await rig.ledger.readTask(task.id))?.task).toEqual(task);
      expect(await rig.rows(`SELECT id FROM elicitations`)).toEqual([]);
      expect(await rig.rows(`SELECT id FROM records`)).toEqual([]);
    });

    it('is refused under an old term, and touches no row', async () => {
      const rig = await open();
      const old = await claimed(rig.ledger);
      await WRITES.park(rig, old);
      await rig.at(rig.nowMs() + 1_000);
      const task = await claim(rig.ledger, old.id);
      expect((await write(rig, old)).won).toBe(false);
      expect((await rig.ledger.readTask(task.id))?.task).toEqual(task);
    });

    it('is refused once the host of the task has gone', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger, { hostLeaseMs: LEASE_MS - 10 });
      await rig.at(rig.nowMs() + LEASE_MS - 10);
      expect((await rig.ledger.readTask(task.id))?.task).toMatchObject({ status: 'failed' });
      expect((await write(rig, task)).won, name).toBe(false);
      expect((await rig.ledger.readTask(task.id))?.task).toMatchObject({ status: 'failed' });
    });
  });

  describe('a checkpoint', () => {
    it('stands together with its records, and a page written again changes nothing', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      for (let n = 0; n < 2; n += 1) expect((await WRITES.checkpoint(rig, task)).won).toBe(true);
      expect(await rig.ledger.readRecords('pages', ALICE, { afterId: '', limit: 10 })).toEqual([
        { id: 'one', body: 1 },
      ]);
      expect((await rig.ledger.readTask(task.id))?.task.checkpoint).toEqual({ page: 1 });
    });

    it('leaves progress and message as they are when it says nothing of them', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      const claimOf = { taskId: task.id, term: task.term, leaseMs: LEASE_MS };
      await rig.ledger.renewClaim({ ...claimOf, progress: { done: 1 }, statusMessage: 'One.' });
      await rig.ledger.renewClaim({ ...claimOf, statusMessage: 'Still one.' });
      await rig.ledger.renewClaim({ ...claimOf, progress: { done: 2 } });
      await WRITES.checkpoint(rig, task);
      expect((await rig.ledger.readTask(task.id))?.task).toMatchObject({
        progress: { done: 2 },
        statusMessage: 'Still one.',
      });
    });
  });

  describe('the lifetime', () => {
    it('is raised to cover a timer, and what the write gives back says so', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger, { ttlMs: 1 });
      const parked = await rig.ledger.parkTask({
        taskId: task.id,
        term: task.term,
        delayMs: 86_400_000,
        why: 'timer',
      });
      if (!parked.won) throw new Error('lost');
      expect(parked.task.ttlMs).toBe(86_400_000 + READ_BACK_MARGIN_MS);
      expect((await rig.ledger.readTask(task.id))?.task).toEqual(parked.task);
    });

    it('is over to the millisecond for reading, listing and cancelling alike', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      await WRITES.finish(rig, task);
      const ended = (await rig.ledger.readTask(task.id))?.task;
      const endMs = (ended?.createdAtMs ?? 0) + (ended?.ttlMs ?? 0);
      const seen = async () => ({
        read: (await rig.ledger.readTask(task.id))?.task.status,
        listed: (await rig.ledger.listTasks(ALICE, 'client-1', { after: null, limit: 9 })).length,
        cancelled: (await rig.ledger.cancelTask(ALICE, task.id, '')).won,
      });
      await rig.at(endMs - 1);
      expect(await seen()).toEqual({ read: 'completed', listed: 1, cancelled: false });
      expect(await rig.ledger.sweepExpired(10)).toEqual([]);
      await rig.at(endMs);
      const before = await seen();
      expect(before).toEqual({ read: undefined, listed: 0, cancelled: false });
      expect(await rig.ledger.sweepExpired(10)).toEqual([task.id]);
      expect(await seen()).toEqual(before);
    });
  });

  it('a list has only what the owner started through the client, page by page', async () => {
    const rig = await open();
    const mine: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      if (n % 2 === 0) await rig.at(rig.nowMs() + 1);
      mine.push((await created(rig.ledger, { id: `t${n}` })).id);
    }
    await created(rig.ledger, { owner: BOB });
    await created(rig.ledger, { clientId: 'client-2' });
    const found: string[] = [];
    let after: { createdAtMs: number; id: string } | null = null;
    for (let page = 0; page < 4; page += 1) {
      const tasks: Task[] = await rig.ledger.listTasks(ALICE, 'client-1', { after, limit: 2 });
      found.push(...tasks.map((task) => task.id));
      const last = tasks.at(-1);
      after = last === undefined ? after : { createdAtMs: last.createdAtMs, id: last.id };
    }
    expect(found).toEqual(mine);
  });

  it('a task whose workers die without a checkpoint is given up', async () => {
    const rig = await open();
    const { id } = await created(rig.ledger);
    for (let death = 1; death <= 5; death += 1) {
      await claim(rig.ledger, id);
      await rig.at(rig.nowMs() + LEASE_MS);
      const swept = await rig.ledger.sweepLeases(10);
      expect(swept).toEqual(death < 5 ? { due: [id], givenUp: [] } : { due: [], givenUp: [id] });
    }
    expect((await rig.ledger.readTask(id))?.task).toMatchObject({
      status: 'failed',
      outcome: { code: -32603 },
    });
  });

  it('five hundred cancels against finishes leave one end each', async () => {
    const rig = await open();
    const other = await rig.node();
    const rounds = 500;
    const tasks: Task[] = [];
    for (let n = 0; n < rounds; n += 1) await created(rig.ledger, { id: fresh('race') });
    tasks.push(
      ...(await rig.ledger.claimTasks({ holder: 'w', leaseMs: LEASE_MS, limit: rounds, perOwner: rounds })),
    );
    const ends = await Promise.all(
      tasks.map(async (task, n) => {
        const moves = [
          () => rig.ledger.cancelTask(ALICE, task.id, 'Cancelled.'),
          () =>
            other.ledger.finishTask({
              taskId: task.id,
              term: task.term,
              outcome: DONE,
              statusMessage: 'Done.',
            }),
        ];
        if (n % 2 === 1) moves.reverse();
        const [first, second] = await Promise.all(moves.map((move) => move()));
        return Number(first?.won) + Number(second?.won);
      }),
    );
    expect(ends.filter((won) => won === 1)).toHaveLength(rounds);
    const ended = await rig.rows(`SELECT task_id FROM audit WHERE event = 'task.ended'`);
    expect(ended).toHaveLength(rounds);
  });
});
