import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { text, type Job } from '../../src/engine/define.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { countingStore } from '../support/counting-store.ts';
import { job, openEngineRig, QUICK, type EngineRig } from '../support/engine-rig.ts';

let rig: EngineRig | undefined;

afterEach(async () => {
  await rig?.world.close();
  rig = undefined;
});

const FORM = { type: 'object', properties: { n: { type: 'integer' } } } as const;

/** A sleep whose length names it in the list of processes. */
function marked(): { seconds: string; alive: () => boolean } {
  const seconds = `3${process.pid}.${Date.now() % 1_000_000}`;
  return {
    seconds,
    alive: () => execFileSync('ps', ['-eo', 'args='], { encoding: 'utf8' }).includes(`sleep ${seconds}`),
  };
}

/** Waits until a child is there, as nothing else says so. */
async function appears(alive: () => boolean): Promise<void> {
  for (let tries = 0; tries < 100 && !alive(); tries += 1) await pause(20);
  expect(alive()).toBe(true);
}

describe('a child process that the job does not wait for', () => {
  test('ends when the job stops for a person', async () => {
    const { seconds, alive } = marked();
    const tool = job('both', async (one) => {
      const child = one.spawn('sh', ['-c', `trap "" TERM; sleep ${seconds} & wait; wait`]);
      await appears(alive);
      await Promise.all([child, one.ask('go', FORM, 'How many?')]);
      return text('x');
    });
    rig = await openEngineRig([tool]);
    await rig.until((await rig.start(tool)).taskId, 'input_required');
    expect(alive()).toBe(false);
    while (rig.world.keyturn.engine.running() > 0) await pause(5);
  });

  test('ends when the job ends', async () => {
    const { seconds, alive } = marked();
    const tool = job('leaves_it', async (one) => {
      void one.spawn('sh', ['-c', `trap "" TERM; sleep ${seconds} & wait; wait`]);
      await appears(alive);
      return text('done');
    });
    rig = await openEngineRig([tool]);
    await rig.until((await rig.start(tool)).taskId, 'completed');
    expect(alive()).toBe(false);
  });
});

test('steps that nobody waits for when the job is left do not bring the server down', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    let rounds = 0;
    // Reads ahead while it saves, as a job for pages would.
    async function ahead(one: Job): Promise<ReturnType<typeof text>> {
      for (;;) {
        rounds += 1;
        const next = one.sleep(40);
        const other = one.spawn('sleep', ['5']);
        await one.save({ rounds });
        await next;
        void other;
      }
    }
    const tool = job('reads_ahead', ahead);
    rig = await openEngineRig([tool]);
    const task = await rig.start(tool);
    while (rounds < 3) await pause(5);
    await rig.world.keyturn.engine.tasks.cancel(rig.caller(), task.taskId);
    while (rig.world.keyturn.engine.running() > 0) await pause(5);
    await pause(100);
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});

test('answers to thirty thousand questions that were never asked cost no statement more than one', async () => {
  let statements = 0;
  const tool = job('asks', async (one) => {
    await one.ask('go', FORM, 'How many?');
    return text('x');
  });
  const opened = await openEngineRig([tool], {
    // No sweep comes between.
    config: { timing: { ...QUICK, sweepEveryMs: 60_000 } },
    wrapStore: (engine) => countingStore(engine, () => (statements += 1)),
  });
  rig = opened;
  const task = await rig.start(tool);
  await rig.until(task.taskId, 'input_required');
  const cost = async (count: number): Promise<number> => {
    const answers = new Map(
      Array.from({ length: count }, (_, n) => [`k${n}`, { action: 'x', content: null }]),
    );
    const before = statements;
    await opened.world.keyturn.engine.tasks.answer(opened.caller(), task.taskId, answers);
    return statements - before;
  };
  const one = await cost(1);
  expect(one).toBeGreaterThan(0);
  expect(await cost(30_000)).toBeLessThanOrEqual(one);
  expect((await rig.read(task.taskId))?.status).toBe('input_required');
});

describe('ten tasks that wait for one sign-in', () => {
  const needs = { requires: { paperboat: { scopes: ['records:read'] } }, waitMs: 60_000 };

  test('are asked before they run, and go on together after one of them, each once; one past its time does not', async () => {
    const runs: string[] = [];
    const work = async (one: Job): Promise<ReturnType<typeof text>> => {
      runs.push(one.taskId);
      const answer = await one.api('paperboat').get(`${rig?.world.sandbox.saas.origin}/api/records?limit=1`);
      return text(String(answer.status));
    };
    const tool = job('needs_access', work, needs);
    const short = job('needs_access_soon', work, { ...needs, waitMs: 400 });
    rig = await openEngineRig([tool, short]);
    const opened = rig;
    const late = await rig.start(short);
    const tasks = await Promise.all(
      Array.from({ length: 10 }, (_, n) => opened.start(tool, { args: { n } })),
    );
    const waiting = await Promise.all(tasks.map((task) => opened.until(task.taskId, 'input_required')));
    // Preflight: nothing ran before there was access.
    expect(runs).toEqual([]);
    await rig.until(late.taskId, 'failed');
    // The first link is abandoned; another task's link serves all.
    await openPerson().signInEverywhere(waiting[7]?.inputs[0]?.url ?? '', { as: 'alice' });
    for (const task of tasks) {
      const done = await rig.until(task.taskId, 'completed');
      expect(done.outcome).toMatchObject({ result: { content: [{ text: '200' }] } });
    }
    expect(runs.toSorted()).toEqual(tasks.map((task) => task.taskId).toSorted());
    expect((await rig.read(late.taskId))?.outcome).toMatchObject({ code: 4011, reason: 'deadline_passed' });
    const { tokenCalls } = rig.world.sandbox.saas;
    expect(tokenCalls.filter((call) => call.grantType === 'authorization_code')).toHaveLength(1);
  });

  test('a cancel that meets the sign-in leaves one end that never changes', async () => {
    const tool = job('needs_access', () => Promise.resolve(text('x')), needs);
    rig = await openEngineRig([tool]);
    const opened = rig;
    const { tasks } = rig.world.keyturn.engine;
    const started = await Promise.all(
      Array.from({ length: 30 }, (_, n) => opened.start(tool, { args: { n } })),
    );
    const waiting = await Promise.all(started.map((task) => opened.until(task.taskId, 'input_required')));
    const signedIn = openPerson().signInEverywhere(waiting[0]?.inputs[0]?.url ?? '', { as: 'alice' });
    const cancels: Promise<unknown>[] = [];
    for (const task of started.slice(1)) {
      cancels.push(tasks.cancel(rig.caller(), task.taskId));
      await pause(6);
    }
    await Promise.all([signedIn, ...cancels]);
    const ends = async () => Promise.all(started.map((task) => opened.read(task.taskId)));
    await rig.until(started[0]?.taskId ?? '', 'completed');
    const first = await ends();
    for (const end of first) {
      expect(['completed', 'cancelled']).toContain(end?.status);
      expect(end?.outcome === null).toBe(end?.status === 'cancelled');
    }
    await pause(400);
    const later = await ends();
    expect(later.map((end) => [end?.status, end?.rev])).toEqual(first.map((end) => [end?.status, end?.rev]));
  });
});

test('all methods agree about a wait that ran out, before and after the sweep', async () => {
  const tool = job(
    'asks',
    async (one) => {
      await one.ask('go', FORM, 'How many?');
      return text('x');
    },
    { waitMs: 300 },
  );
  // Nothing is swept by itself for as long as this test looks.
  rig = await openEngineRig([tool], { config: { timing: { ...QUICK, sweepEveryMs: 600_000 } } });
  const { tasks } = rig.world.keyturn.engine;
  const task = await rig.start(tool);
  const waiting = await rig.until(task.taskId, 'input_required');
  expect(waiting.ttlMs).toBeGreaterThan((waiting.deadlineMs ?? 0) - waiting.createdAtMs);
  const woken = await tasks.waitForChange(rig.caller(), task.taskId, {
    beyondRev: waiting.rev,
    timeoutMs: 5_000,
    signal: AbortSignal.timeout(5_000),
  });
  expect(woken?.status).toBe('failed');
  const look = async () => {
    if (rig === undefined) throw new Error('no rig');
    const answered = await tasks.answer(
      rig.caller(),
      task.taskId,
      new Map([['go', { action: 'accept', content: { n: 1 } }]]),
    );
    const cancelled = await tasks.cancel(rig.caller(), task.taskId);
    const listed = await tasks.list(rig.caller(), { after: null, limit: 10 });
    const read = await rig.read(task.taskId);
    return { answered, cancelled: cancelled?.cancelled, listed: listed.map((one) => one.status), read };
  };
  const before = await look();
  expect(before).toMatchObject({
    answered: { problems: {} },
    cancelled: false,
    listed: ['failed'],
    read: { status: 'failed', outcome: { code: 4011, reason: 'deadline_passed' }, inputs: [] },
  });
  await rig.world.keyturn.engine.sweepNow();
  expect(await look()).toEqual(before);
});

test('only work whose term was lost is told as torn down', async () => {
  const lines: string[] = [];
  let begun = 0;
  const ends = job('ends', async (one) => {
    await one.save({ n: 1 });
    return text('x');
  });
  const asks = job('asks', async (one) => {
    await one.ask('go', FORM, 'How many?');
    return text('x');
  });
  const cancelled = job('cancelled', async (one) => {
    begun += 1;
    await pause(20_000, undefined, { signal: one.signal }).catch(() => undefined);
    return text('x');
  });
  rig = await openEngineRig([ends, asks, cancelled], {
    logStream: { write: (line: string) => void lines.push(line) },
    config: { log: { level: 'info' } },
  });
  const opened = rig;
  const many = Array.from({ length: 20 }, (_, n) => n);
  const ended = await Promise.all(many.map((n) => opened.start(ends, { args: { n } })));
  const asking = await Promise.all(many.map((n) => opened.start(asks, { args: { n } })));
  for (const task of ended) await rig.until(task.taskId, 'completed');
  for (const task of asking) await rig.until(task.taskId, 'input_required');
  const lost = await rig.start(cancelled);
  while (begun === 0) await pause(5);
  await rig.world.keyturn.engine.tasks.cancel(rig.caller(), lost.taskId);
  while (rig.world.keyturn.engine.running() > 0) await pause(5);
  const torn = lines.filter((line) => line.includes('torn down'));
  expect(torn).toHaveLength(1);
  expect(torn[0]).toContain(lost.taskId);
});
