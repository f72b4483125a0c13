import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Refusal } from '../../src/errors.ts';
import { text } from '../../src/engine/define.ts';
import type { SqlEngine } from '../../src/store/sql.ts';
import { job, openEngineRig, QUICK, type EngineRig } from '../support/engine-rig.ts';

let rig: EngineRig | undefined;

afterEach(async () => {
  await rig?.world.close();
  rig = undefined;
});

/** A database of which one write in so many fails: half of them never happened, half did and nobody was told. */
function unreliable(chance: () => number): (engine: SqlEngine) => SqlEngine {
  return (engine) => ({
    ...engine,
    async write(work) {
      const rate = chance();
      const draw = Math.random();
      const lost = () => new Refusal('store_unavailable', { facts: { test: true } });
      if (draw < rate / 2) throw lost();
      const done = await engine.write(work);
      if (draw < rate) throw lost();
      return done;
    },
  });
}

test('jobs over a database that loses one write in seven end once, each record once', async () => {
  let rate = 0;
  const PAGES = 15;
  const tool = job('pages', async (one) => {
    let page = (one.checkpoint as { page: number } | null)?.page ?? 0;
    const task = (one.args as { n: number }).n;
    for (; page < PAGES; page += 1) {
      const row = { id: `${task}-${page}`, body: { page } };
      await one.save({ page: page + 1 }, { collection: 'chaos', rows: [row] });
    }
    if (task % 2 === 0) {
      await one.ask(
        'go',
        { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
        'Go on?',
      );
    }
    return text('done');
  });
  rig = await openEngineRig([tool], {
    wrapStore: unreliable(() => rate),
    config: { timing: { ...QUICK, leaseMs: 600 }, limits: { runningPerOwner: 8 } },
  });
  const opened = rig;
  const { tasks } = rig.world.keyturn.engine;
  const started = await Promise.all(
    Array.from({ length: 12 }, (_, n) => opened.start(tool, { args: { n } })),
  );
  rate = 1 / 7;
  const open = new Set(started.map((task) => task.taskId));
  const giveUpAt = Date.now() + 45_000;
  while (open.size > 0) {
    for (const taskId of open) {
      const now = await rig.read(taskId);
      if (now?.status === 'input_required') {
        // What the client was not told it says again.
        await tasks
          .answer(
            rig.caller(),
            taskId,
            new Map(now.inputs.map((one) => [one.key, { action: 'accept', content: { ok: true } }])),
          )
          .catch(() => undefined);
      }
      if (now?.outcome != null) {
        expect(now.outcome).toMatchObject({ result: { content: [{ text: 'done' }] } });
        open.delete(taskId);
      }
    }
    if (Date.now() > giveUpAt) throw new Error(`${open.size} tasks did not end`);
    await pause(30);
  }
  rate = 0;
  const kept = await rig.world.keyturn.ledger.readRecords('chaos', rig.caller().owner, {
    afterId: '',
    limit: 1_000,
  });
  expect(kept).toHaveLength(12 * PAGES);
  while (rig.world.keyturn.engine.running() > 0) await pause(10);
  expect(await rig.world.keyturn.ledger.countTasks()).toEqual({ due: 0, leased: 0 });
}, 60_000);

test('a database that is away for a while delays work, and ends none', async () => {
  let rate = 0;
  let rounds = 0;
  const tool = job('counts', async (one) => {
    let n = (one.checkpoint as { n: number } | null)?.n ?? 0;
    for (; n < 40; n += 1) {
      rounds += 1;
      await one.save({ n: n + 1 });
      await one.sleep(20);
    }
    return text('40');
  });
  rig = await openEngineRig([tool], { wrapStore: unreliable(() => rate) });
  const task = await rig.start(tool);
  while (rounds < 5) await pause(5);
  rate = 1;
  await pause(3_000);
  rate = 0;
  const done = await rig.until(task.taskId, 'completed');
  expect(done.outcome).toMatchObject({ result: { content: [{ text: '40' }] } });
  expect(rounds).toBeLessThanOrEqual(43);
}, 30_000);
