/** Waits in the ledger: stopped, answered, woken, over; on every engine. */
import { describe, expect, it } from 'vitest';
import { TRANSITIONS, type Move } from '../../src/task/transitions.ts';
import type { TaskStatus } from '../../src/task/status.ts';
import type { Outcome, Task } from '../../src/store/records.ts';
import {
  ALICE,
  BOB,
  LEASE_MS,
  WAIT_MS,
  active,
  claim,
  claimed,
  connection,
  created,
  exchanged,
  formNeed,
  fresh,
  need,
  pressed,
  signedIn,
  stop,
  waiting,
} from '../support/ledger-records.ts';
import { onEveryEngine, type Rig } from '../support/ledgers.ts';

const DONE: Outcome = { kind: 'result', result: 1 };
const FAILED: Outcome = { kind: 'error', code: 1, message: 'No.', reason: 'protocol', facts: {} };

const answers = (key: string, action: unknown, content?: unknown) => new Map([[key, { action, content }]]);

/** A task in a status, and what a move needs to be tried on it. */
interface Scene {
  readonly rig: Rig;
  readonly task: Task;
  readonly key: string;
  readonly connectionId: string;
  readonly stateHash: string;
}

async function scene(rig: Rig, status: TaskStatus): Promise<Scene> {
  const task = await claimed(rig.ledger, { hostLeaseMs: WAIT_MS });
  const access = await connection(rig.ledger, task.owner, fresh('provider'));
  const rest = { rig, connectionId: access.id, key: '', stateHash: '' };
  const finish = async (outcome: Outcome): Promise<Scene> => {
    const won = await rig.ledger.finishTask({
      taskId: task.id,
      term: task.term,
      outcome,
      statusMessage: '.',
    });
    if (!won.won) throw new Error('lost');
    return { ...rest, task: won.task };
  };
  if (status === 'working') return { ...rest, task };
  if (status === 'completed') return finish(DONE);
  if (status === 'failed') return finish(FAILED);
  if (status === 'cancelled') {
    const won = await rig.ledger.cancelTask(task.owner, task.id, '.');
    if (!won.won) throw new Error('lost');
    return { ...rest, task: won.task };
  }
  const stopped = await stop(rig.ledger, task, [
    need({ connectionId: access.id, judgedGeneration: 0 }),
    formNeed(),
  ]);
  const link = stopped.asked.find((question) => question.kind === 'authorize');
  if (link === undefined) throw new Error('nothing was asked');
  const { stateHash } = await pressed(rig.ledger, link);
  return { ...rest, task: stopped.task, key: link.key, stateHash };
}

const held = ({ task }: Scene) => ({ taskId: task.id, term: task.term });

/** Tries each move with everything that it needs but the right status. */
const TRY: Record<Move, (scene: Scene) => Promise<unknown>> = {
  stop: async (at) =>
    at.rig.ledger.stopTask({
      ...held(at),
      needs: [need({ connectionId: at.connectionId, judgedGeneration: 0 })],
      waitMs: WAIT_MS,
      statusMessage: '.',
    }),
  complete: (at) => at.rig.ledger.finishTask({ ...held(at), outcome: DONE, statusMessage: '.' }),
  fail: (at) => at.rig.ledger.finishTask({ ...held(at), outcome: FAILED, statusMessage: '.' }),
  resume: async ({ rig, task, connectionId }) => {
    await rig.run(
      `UPDATE elicitations SET finished_at = 1, outcome = 'answered' WHERE task_id = ? AND kind = 'form'`,
      task.id,
    );
    await rig.ledger.approveClient(ALICE, connectionId, task.clientId);
    await rig.ledger.commitRefresh({
      connectionId,
      generation: 0,
      grant: { ...SEALED, recordKey: fresh('record') },
    });
  },
  answer: async ({ rig, task }) => {
    await rig.run(
      `UPDATE elicitations SET finished_at = 1, outcome = 'granted' WHERE task_id = ? AND kind <> 'form'`,
      task.id,
    );
    await rig.ledger.answerTask(ALICE, task.id, answers('folder', 'accept', { folder: 'a' }));
  },
  decline: ({ rig, task, key }) => rig.ledger.answerTask(ALICE, task.id, answers(key, 'decline')),
  deny: ({ rig, stateHash }) =>
    rig.ledger.refuseAttempt({
      stateHash,
      reason: 'access_denied',
      ends: { reason: 'access_denied', statusMessage: '.' },
    }),
  expire: async ({ rig, task }) => {
    await rig.at((task.deadlineMs ?? rig.nowMs()) + 0);
    await rig.ledger.sweepLapsed(100);
  },
  abandon: async ({ rig, task }) => {
    await rig.run(`UPDATE tasks SET deadline = deadline + 1 WHERE id = ?`, task.id);
    await rig.at(task.createdAtMs + WAIT_MS);
    await rig.ledger.sweepLapsed(100);
  },
  'give up': async ({ rig, task }) => {
    await rig.run(`UPDATE tasks SET strikes = 5 WHERE id = ?`, task.id);
    await rig.at(task.createdAtMs + LEASE_MS);
    await rig.ledger.sweepLeases(100);
  },
  cancel: ({ rig, task }) => rig.ledger.cancelTask(ALICE, task.id, '.'),
};

const SEALED = {
  recordKey: '',
  digest: 'd',
  kid: 'k1',
  sealedGeneration: 1,
  kind: 'tokens' as const,
  scopes: ['repo'],
  expiresAtMs: null,
  refreshable: true,
  captured: {},
  subject: null,
  subjectLabel: null,
};

onEveryEngine(({ rig: open }) => {
  describe('the table of moves', () => {
    const statuses = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
    for (const from of statuses) {
      it(`leads from ${from} exactly where it says, whatever is tried`, async () => {
        const rig = await open();
        for (const move of Object.keys(TRY) as Move[]) {
          const at = await scene(rig, from);
          const before = (await rig.rows(`SELECT * FROM tasks WHERE id = ?`, at.task.id))[0];
          await TRY[move](at);
          const row = TRANSITIONS.find((one) => one.from === from && one.move === move);
          const [after] = await rig.rows<{ status: string; term: number }>(
            `SELECT * FROM tasks WHERE id = ?`,
            at.task.id,
          );
          // The table names who ends a wait whose host has gone and whose deadline has come at once: the same sweep.
          const to = row?.to ?? from;
          expect({ move, from, to: after?.status }).toEqual({ move, from, to });
          const changed = ['resume', 'answer'].includes(move) ? 0 : 1;
          if (row !== undefined) expect(after?.term).toBe(at.task.term + changed);
          else if (from !== 'working' && from !== 'input_required') {
            expect({ ...after, strikes: 0, deadline: null }).toEqual({
              ...(before as object),
              strikes: 0,
              deadline: null,
            });
          }
        }
      });
    }
  });

  describe('the deadline', () => {
    const moves = {
      'a grant': async (
        rig: Rig,
        { question }: Awaited<ReturnType<typeof waiting>>,
        at: () => Promise<void>,
      ) => {
        const { stateHash, sealed } = await exchanged(rig.ledger, question);
        await at();
        return (await rig.ledger.commitGrant({ stateHash, grant: sealed, again: null })).resumed.length > 0;
      },
      'an accept': async (
        rig: Rig,
        { task }: Awaited<ReturnType<typeof waiting>>,
        at: () => Promise<void>,
      ) => {
        await at();
        return (
          ((await rig.ledger.answerTask(ALICE, task.id, answers('github', 'accept')))?.taken.length ?? 0) > 0
        );
      },
      'a decline': async (
        rig: Rig,
        { task }: Awaited<ReturnType<typeof waiting>>,
        at: () => Promise<void>,
      ) => {
        await at();
        return (
          ((await rig.ledger.answerTask(ALICE, task.id, answers('github', 'decline')))?.taken.length ?? 0) > 0
        );
      },
      'a cancel': async (
        rig: Rig,
        { task }: Awaited<ReturnType<typeof waiting>>,
        at: () => Promise<void>,
      ) => {
        await at();
        return (await rig.ledger.cancelTask(ALICE, task.id, '.')).won;
      },
      'a take': async (
        rig: Rig,
        { question }: Awaited<ReturnType<typeof waiting>>,
        at: () => Promise<void>,
      ) => {
        const { stateHash } = await pressed(rig.ledger, question);
        await at();
        return (await rig.ledger.takeAttempt({ stateHash, holder: 'n', leaseMs: 1 }))?.kind === 'taken';
      },
      'a press of Continue': async (
        rig: Rig,
        { question }: Awaited<ReturnType<typeof waiting>>,
        at: () => Promise<void>,
      ) => {
        await at();
        return pressed(rig.ledger, question).then(
          () => true,
          () => false,
        );
      },
    };
    describe.each(Object.entries(moves))('for %s', (_, move) => {
      it.each([-1, 0, 1])('at %i ms', async (offsetMs) => {
        const rig = await open();
        const wait = await waiting(rig.ledger);
        const applied = await move(rig, wait, () => rig.at((wait.task.deadlineMs ?? 0) + offsetMs));
        expect(applied).toBe(offsetMs < 0);
        const seen = (await rig.ledger.readTask(wait.task.id))?.task;
        if (offsetMs >= 0) {
          expect(seen).toMatchObject({ status: 'failed', outcome: { code: 4011 } });
          await rig.ledger.sweepLapsed(10);
          expect((await rig.ledger.readTask(wait.task.id))?.task).toEqual(seen);
        }
      });
    });

    it('a grant after it is kept for the connection and wakes nobody', async () => {
      const rig = await open();
      const { task, question, access } = await waiting(rig.ledger);
      const { stateHash, sealed } = await exchanged(rig.ledger, question);
      await rig.at(task.deadlineMs ?? 0);
      const granted = await rig.ledger.commitGrant({ stateHash, grant: sealed, again: null });
      expect(granted).toMatchObject({ kind: 'granted', resumed: [], ownTaskOver: true });
      expect(await rig.ledger.readConnection(access.id)).toMatchObject({
        status: 'active',
        record: { recordKey: sealed.recordKey },
      });
    });
  });

  describe('before and after the sweep', () => {
    it.each(['deadline', 'host'] as const)(
      'every method gives the same answer about a passed %s',
      async (what) => {
        const rig = await open();
        const { task } = await waiting(rig.ledger, what === 'host' ? { hostLeaseMs: WAIT_MS / 2 } : {});
        const endMs = what === 'host' ? task.createdAtMs + WAIT_MS / 2 : (task.deadlineMs ?? 0);
        await rig.at(endMs + 5);
        const seen = async () => ({
          read: await rig.ledger.readTask(task.id),
          list: await rig.ledger.listTasks(ALICE, task.clientId, { after: null, limit: 10 }),
          cancel: await rig.ledger.cancelTask(ALICE, task.id, '.'),
          update: await rig.ledger.answerTask(ALICE, task.id, answers('github', 'accept')),
          decline: await rig.ledger.answerTask(ALICE, task.id, answers('github', 'decline')),
        });
        const before = await seen();
        expect(before.read).toMatchObject({ asked: [], task: { status: 'failed', updatedAtMs: endMs } });
        expect(await rig.ledger.sweepLapsed(10)).toEqual([task.id]);
        expect(JSON.stringify(await seen())).toBe(JSON.stringify(before));
        expect(await rig.ledger.sweepLapsed(10)).toEqual([]);
      },
    );
  });

  describe('a stop', () => {
    it('goes on when what is missing has arrived since it was judged dead', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      const task = await claimed(rig.ledger);
      const stopped = await rig.ledger.stopTask({
        taskId: task.id,
        term: task.term,
        needs: [need({ connectionId: access.id, judgedGeneration: access.generation - 1 })],
        waitMs: WAIT_MS,
        statusMessage: '.',
      });
      expect(stopped).toEqual({ kind: 'go on' });
      expect((await rig.ledger.readTask(task.id))?.task).toEqual(task);
    });

    it('asks only for what is still missing', async () => {
      const rig = await open();
      const there = await active(rig.ledger, ALICE, 'there');
      const missing = await connection(rig.ledger, ALICE, 'missing');
      const task = await claimed(rig.ledger);
      const { asked } = await stop(rig.ledger, task, [
        need({ name: 'there', connectionId: there.id }),
        need({ name: 'missing', connectionId: missing.id }),
      ]);
      expect(asked.map((question) => question.name)).toEqual(['missing']);
    });

    it('raises the lifetime to cover the deadline and the time to read the outcome', async () => {
      const rig = await open();
      const { task } = await waiting(rig.ledger, { ttlMs: 1 });
      expect(task.ttlMs).toBe((task.deadlineMs ?? 0) - task.createdAtMs + 600_000);
    });

    it('never uses a key twice, whatever the needs are called', async () => {
      const rig = await open();
      let task = await claimed(rig.ledger);
      const keys: string[] = [];
      for (const names of [['a', 'a-2'], ['a'], ['a-2', 'a'], ['a-2-2', 'a-2']]) {
        const stopped = await stop(
          rig.ledger,
          task,
          names.map((name) => formNeed({ name })),
        );
        keys.push(...stopped.asked.map((question) => question.key));
        for (const { key } of stopped.asked) {
          await rig.ledger.answerTask(ALICE, task.id, answers(key, 'accept', { folder: 'x' }));
        }
        task = await claim(rig.ledger, task.id);
      }
      expect(keys).toHaveLength(7);
      expect(new Set(keys).size).toBe(7);
    });
  });

  describe('answers', () => {
    it('an accepted link is listed no more but answered, the wait goes on and says until when', async () => {
      const rig = await open();
      const { task } = await waiting(rig.ledger);
      expect(await rig.ledger.answerTask(ALICE, task.id, answers('github', 'accept'))).toEqual({
        taken: ['github'],
        problems: {},
      });
      const view = await rig.ledger.readTask(task.id);
      expect(view?.asked).toMatchObject([{ key: 'github', action: 'accept' }]);
      expect(view?.task.status).toBe('input_required');
      expect(view?.task.statusMessage).toContain(new Date(task.deadlineMs ?? 0).toISOString());
    });

    it('part of what was asked is taken, the rest stays open, and the last one wakes the task', async () => {
      const rig = await open();
      const task = await claimed(rig.ledger);
      await stop(rig.ledger, task, [formNeed({ name: 'one' }), formNeed({ name: 'two' })]);
      const some = new Map([
        ['one', { action: 'accept', content: { folder: 'x' } }],
        ['two', { action: 'accept', content: { folder: 7 } }],
        ['three', { action: 'accept', content: {} }],
      ]);
      const first = await rig.ledger.answerTask(ALICE, task.id, some);
      expect(first?.taken).toEqual(['one']);
      expect(first?.problems['two']).toHaveLength(1);
      expect((await rig.ledger.readTask(task.id))?.asked.map((question) => question.key)).toEqual(['two']);
      await rig.ledger.answerTask(ALICE, task.id, answers('two', 'accept', { folder: 'y' }));
      expect((await rig.ledger.readTask(task.id))?.task.status).toBe('working');
      expect((await rig.ledger.readAnswers(task.id)).map(({ content }) => content)).toEqual([
        { folder: 'x' },
        { folder: 'y' },
      ]);
    });

    it('of nobody else than the owner are taken, and an empty set writes nothing', async () => {
      const rig = await open();
      const { task } = await waiting(rig.ledger);
      expect(await rig.ledger.answerTask(BOB, task.id, answers('github', 'decline'))).toBeUndefined();
      const audit = (await rig.rows(`SELECT seq FROM audit`)).length;
      expect(await rig.ledger.answerTask(ALICE, task.id, new Map())).toEqual({ taken: [], problems: {} });
      expect((await rig.ledger.readTask(task.id))?.task).toEqual(task);
      expect(await rig.rows(`SELECT seq FROM audit`)).toHaveLength(audit);
    });

    it('other than the three actions are ignored', async () => {
      const rig = await open();
      const { task } = await waiting(rig.ledger);
      for (const action of ['Accept', '', null, undefined, 1, {}, ['accept']]) {
        expect((await rig.ledger.answerTask(ALICE, task.id, answers('github', action)))?.taken).toEqual([]);
      }
      expect((await rig.ledger.readTask(task.id))?.task).toEqual(task);
    });
  });

  describe('a link issued again', () => {
    it('comes at half of the remaining time under a new key, at most twice; a decline of it ends nothing', async () => {
      const rig = await open();
      const { task, question } = await waiting(rig.ledger);
      const again = () => ({
        id: fresh('ask'),
        link: { handleHash: fresh('hash'), kid: 'k1' },
        message: 'Again.',
      });
      let asked = question;
      for (let n = 1; n <= 2; n += 1) {
        await rig.ledger.answerTask(ALICE, task.id, answers(asked.key, 'accept'));
        const half = rig.nowMs() + Math.ceil(((task.deadlineMs ?? 0) - rig.nowMs()) / 2);
        await rig.at(half - 1);
        expect(await rig.ledger.dueReasks(10)).toEqual([]);
        await rig.at(half);
        expect((await rig.ledger.dueReasks(10)).map((one) => one.id)).toEqual([asked.id]);
        expect(await rig.ledger.reask(asked.id, again())).toBe(true);
        expect(await rig.ledger.reask(asked.id, again())).toBe(false);
        const view = await rig.ledger.readTask(task.id);
        const next = view?.asked.find((one) => one.key === `github-${n + 1}`);
        if (next === undefined) throw new Error('not asked again');
        asked = next;
      }
      await rig.ledger.answerTask(ALICE, task.id, answers(asked.key, 'decline'));
      expect((await rig.ledger.readTask(task.id))?.task.status).toBe('input_required');
      await rig.at((task.deadlineMs ?? 0) - 1);
      expect(await rig.ledger.dueReasks(10)).toEqual([]);
      // The first link is still good.
      expect((await signedIn(rig.ledger, question)).resumed).toEqual([task.id]);
    });

    it('does not come while a sign-in is under way', async () => {
      const rig = await open();
      const { task, question } = await waiting(rig.ledger);
      await rig.ledger.answerTask(ALICE, task.id, answers('github', 'accept'));
      await rig.at(rig.nowMs() + WAIT_MS / 2);
      await pressed(rig.ledger, question);
      const fresh1 = { id: fresh('ask'), link: { handleHash: fresh('hash'), kid: 'k1' }, message: '.' };
      expect(await rig.ledger.reask(question.id, fresh1)).toBe(false);
      expect((await rig.ledger.readTask(task.id))?.asked).toHaveLength(1);
    });
  });

  describe('waking', () => {
    it('one sign-in wakes every task that waits for the connection, and only those it satisfies', async () => {
      const rig = await open();
      const { task, question, access } = await waiting(rig.ledger);
      const same = await claimed(rig.ledger);
      await stop(rig.ledger, same, [need({ connectionId: access.id })]);
      const wider = await claimed(rig.ledger);
      await stop(rig.ledger, wider, [need({ connectionId: access.id, scopes: ['repo', 'admin'] })]);
      const otherClient = await claimed(rig.ledger, { clientId: 'client-2' });
      await stop(rig.ledger, otherClient, [need({ connectionId: access.id })]);
      const { resumed } = await signedIn(rig.ledger, question);
      expect(resumed.toSorted()).toEqual([task.id, same.id].toSorted());
      expect(await rig.ledger.approveClient(ALICE, access.id, 'client-2')).toEqual([otherClient.id]);
      expect((await rig.ledger.readTask(wider.id))?.task.status).toBe('input_required');
    });

    it('a missed wake-up is made good by the sweep', async () => {
      const rig = await open();
      const { task, access } = await waiting(rig.ledger);
      await rig.ledger.approveClient(ALICE, access.id, task.clientId);
      await rig.run(
        `UPDATE connections SET status = 'active', generation = 1, record = ?, updated_at = ? WHERE id = ?`,
        JSON.stringify(SEALED),
        rig.nowMs(),
        access.id,
      );
      expect(await rig.ledger.sweepSatisfied(10)).toEqual([task.id]);
      expect(await rig.ledger.sweepSatisfied(10)).toEqual([]);
    });
  });

  it('a finished task is forgotten with its questions and attempts, but not under an exchange', async () => {
    const rig = await open();
    const { task, question, access } = await waiting(rig.ledger);
    await pressed(rig.ledger, question);
    const { stateHash, sealed } = await exchanged(rig.ledger, question);
    await rig.ledger.cancelTask(ALICE, task.id, '.');
    await rig.at(rig.nowMs() + 10 * 24 * 3_600_000);
    expect(await rig.ledger.sweepExpired(10)).toEqual([]);
    expect(await rig.ledger.readTask(task.id)).toBeUndefined();
    const granted = await rig.ledger.commitGrant({ stateHash, grant: sealed, again: null });
    expect(granted).toMatchObject({ kind: 'granted', resumed: [] });
    expect(await rig.ledger.sweepExpired(10)).toEqual([task.id]);
    for (const table of ['tasks', 'elicitations', 'attempts']) {
      expect(await rig.rows(`SELECT 1 AS one FROM ${table}`), table).toEqual([]);
    }
    expect((await rig.ledger.readConnection(access.id))?.record?.recordKey).toBe(sealed.recordKey);
  });

  it('forgetting goes in batches of the size that was asked for', async () => {
    const rig = await open();
    for (let n = 0; n < 7; n += 1) {
      const task = await created(rig.ledger);
      await rig.ledger.cancelTask(ALICE, task.id, '.');
    }
    await rig.at(rig.nowMs() + 10 * 24 * 3_600_000);
    const sizes: number[] = [];
    for (let n = 0; n < 4; n += 1) sizes.push((await rig.ledger.sweepExpired(3)).length);
    expect(sizes).toEqual([3, 3, 1, 0]);
  });
});
