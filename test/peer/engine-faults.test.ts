import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { text, type Job } from '../../src/engine/define.ts';
import type { SqlEngine } from '../../src/store/sql.ts';
import { countingStore } from '../support/counting-store.ts';
import { declared, job, openEngineRig, QUICK, type EngineRig } from '../support/engine-rig.ts';

let rig: EngineRig | undefined;

afterEach(async () => {
  await rig?.world.close();
  rig = undefined;
});

/** Tells a test of every write that has a statement, and may hold its answer back after the commit. */
function watchWrites(
  statement: RegExp,
  committed: () => Promise<void> | void,
): (engine: SqlEngine) => SqlEngine {
  return (engine) => ({
    ...engine,
    async write(work) {
      let met = false;
      const result = await countingStore(engine, (sql) => {
        met ||= statement.test(sql);
      }).write(work);
      if (met) await committed();
      return result;
    },
  });
}

const CLAIM = /SET term = term \+ 1, holder = \?/;

describe('durable timers', () => {
  test('a long sleep after a short one is slept once', async () => {
    const starts: number[] = [];
    const tool = job('short_then_long', async (one) => {
      starts.push(performance.now());
      await one.sleep(50);
      await one.sleep(3_100);
      return text('awake');
    });
    rig = await openEngineRig([tool]);
    const task = await rig.start(tool);
    await rig.until(task.taskId, 'completed');
    expect(starts).toHaveLength(2);
  });

  test('two long sleeps are two timers, whatever lies between', async () => {
    const starts: number[] = [];
    const tool = job('long_short_long', async (one) => {
      starts.push(performance.now());
      await one.sleep(3_100);
      await one.sleep(20);
      await one.sleep(3_100);
      return text('awake');
    });
    rig = await openEngineRig([tool]);
    const task = await rig.start(tool);
    await rig.until(task.taskId, 'completed');
    expect(starts).toHaveLength(3);
    expect((starts[2] ?? 0) - (starts[0] ?? 0)).toBeGreaterThan(6_100);
  }, 30_000);
});

describe('a child process', () => {
  test('that leaves a daemon with its pipes behind does not hold the worker', async () => {
    const mark = `${process.pid}${Date.now() % 100_000}`;
    const tool = job('daemon', async (one) => {
      const ended = await one.spawn('sh', ['-c', `echo hello; setsid sleep 4${mark} & exit 3`]);
      return text(`${ended.code} ${ended.stdout.trim()}`);
    });
    try {
      rig = await openEngineRig([tool]);
      const task = await rig.start(tool);
      const done = await rig.until(task.taskId, 'completed');
      expect(done.outcome).toMatchObject({ result: { content: [{ text: '3 hello' }] } });
    } finally {
      for (const line of execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n')) {
        if (line.includes(`sleep 4${mark}`)) process.kill(Number(line.trim().split(' ')[0]), 'SIGKILL');
      }
    }
  });
});

describe('a stop of the server', () => {
  test('that meets a claim on its way hands the task back, and begins no work', async () => {
    let runs = 0;
    let stopping: Promise<void> | undefined;
    let armed = false;
    const tool = job('late', () => {
      runs += 1;
      return Promise.resolve(text('x'));
    });
    rig = await openEngineRig([tool], {
      wrapStore: watchWrites(CLAIM, () => {
        if (!armed || stopping !== undefined) return;
        stopping = rig?.world.keyturn.engine.stop();
      }),
    });
    const { keyturn } = rig.world;
    armed = true;
    const task = await rig.start(tool);
    while (stopping === undefined) await pause(5);
    await stopping;
    expect(keyturn.engine.running()).toBe(0);
    const view = await keyturn.ledger.readTask(task.taskId);
    expect(view?.task).toMatchObject({ status: 'working', holder: null, leaseUntilMs: null });
    expect(view?.task.dueAtMs).toBeLessThanOrEqual(view?.nowMs ?? 0);
    expect(runs).toBe(0);
  });

  test('takes a result that comes while it waits: the work is not done again', async () => {
    let runs = 0;
    const tool = job('nearly_done', async () => {
      runs += 1;
      await pause(150);
      return text(`run ${runs}`);
    });
    rig = await openEngineRig([tool]);
    const task = await rig.start(tool);
    while (runs === 0) await pause(5);
    await rig.world.restart();
    const done = await rig.until(task.taskId, 'completed');
    expect(done.outcome).toMatchObject({ result: { content: [{ text: 'run 1' }] } });
    expect(runs).toBe(1);
  });

  test('does not wait for ever for a job that ignores its signal: the task is handed back', async () => {
    let begun = 0;
    const tool = job('deaf', async () => {
      begun += 1;
      await pause(begun === 1 ? 8_000 : 1);
      return text(`run ${begun}`);
    });
    rig = await openEngineRig([tool], { config: { timing: { ...QUICK, leaseMs: 30_000 } } });
    const task = await rig.start(tool);
    while (begun === 0) await pause(5);
    const startedAt = performance.now();
    await rig.world.restart();
    expect(performance.now() - startedAt).toBeLessThan(6_000);
    const done = await rig.until(task.taskId, 'completed');
    expect(done.outcome).toMatchObject({ result: { content: [{ text: 'run 2' }] } });
  }, 30_000);
});

describe('a worker that lost its term', () => {
  test('still counts as a worker until its work has ended', async () => {
    const runs: number[] = [];
    const counts: number[] = [];
    const tool = job('deaf_once', async () => {
      runs.push(runs.length + 1);
      if (runs.length === 1) {
        // The whole process stands still for longer than the lease, and then this job goes on without listening.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
        await pause(2_000);
        return text('too late');
      }
      await pause(100);
      counts.push(rig?.world.keyturn.engine.running() ?? 0);
      return text('x');
    });
    rig = await openEngineRig([tool], { config: { limits: { workers: 2 } } });
    const done = await rig.until((await rig.start(tool)).taskId, 'completed');
    expect(done.outcome).toMatchObject({ result: { content: [{ text: 'x' }] } });
    expect(counts).toEqual([2]);
  });

  test('before its work began never begins it: a claim whose answer came after its lease', async () => {
    let held = false;
    const terms: number[] = [];
    const tool = job('once', async (one) => {
      terms.push(Number((await rig?.world.keyturn.ledger.readTask(one.taskId))?.task.term));
      return text('x');
    });
    rig = await openEngineRig([tool], {
      wrapStore: watchWrites(CLAIM, async () => {
        if (held) return;
        held = true;
        await pause(QUICK.leaseMs + 300);
      }),
    });
    const task = await rig.start(tool);
    await rig.until(task.taskId, 'completed');
    // Term 1 lapsed on its way (2), the next claim is 3.
    expect(terms).toEqual([3]);
  });
});

describe('a host that is there', () => {
  test('keeps a quiet task alive by polling, at a write for each half of its lease', async () => {
    let renewals = 0;
    const tool = job(
      'quiet',
      async (one) => {
        await pause(3_500, undefined, { signal: one.signal }).catch(() => undefined);
        return text('x');
      },
      { hostLeaseMs: 1_200 },
    );
    rig = await openEngineRig([tool], {
      wrapStore: watchWrites(/SET host_until = keyturn_now/, () => {
        renewals += 1;
      }),
    });
    const task = await rig.start(tool);
    let polls = 0;
    for (let status = 'working'; status === 'working'; polls += 1) {
      await pause(60);
      const now = await rig.read(task.taskId);
      status = now?.status ?? 'unknown';
      expect(now?.outcome ?? null).not.toMatchObject({ reason: 'host_gone' });
    }
    expect(polls).toBeGreaterThan(30);
    expect(renewals).toBeGreaterThan(2);
    expect(renewals).toBeLessThanOrEqual(12);
  });

  test('keeps a quiet task alive by one long wait', async () => {
    const tool = job(
      'quiet',
      async (one) => {
        await pause(2_500, undefined, { signal: one.signal }).catch(() => undefined);
        return text('x');
      },
      { hostLeaseMs: 900 },
    );
    rig = await openEngineRig([tool]);
    const task = await rig.start(tool);
    const after = await rig.world.keyturn.engine.tasks.waitForChange(rig.caller(), task.taskId, {
      beyondRev: task.rev,
      timeoutMs: 8_000,
      signal: AbortSignal.timeout(8_000),
    });
    expect(after?.outcome).toMatchObject({ kind: 'result' });
  });

  test('is seen by its answers as well', async () => {
    const tool = job(
      'asks',
      async (one) => {
        await one.ask('go', { type: 'object', properties: { n: { type: 'integer' } } }, 'How many?');
        return text('x');
      },
      { hostLeaseMs: 1_500 },
    );
    rig = await openEngineRig([tool]);
    const task = await rig.start(tool);
    await rig.until(task.taskId, 'input_required');
    const before = (await rig.world.keyturn.ledger.readTask(task.taskId))?.task.hostUntilMs ?? 0;
    for (let tries = 0; tries < 6; tries += 1) {
      await pause(250);
      await rig.world.keyturn.engine.tasks.answer(
        rig.caller(),
        task.taskId,
        new Map([['unknown', { action: 'accept', content: {} }]]),
      );
    }
    const after = (await rig.world.keyturn.ledger.readTask(task.taskId))?.task;
    expect(after?.status).toBe('input_required');
    expect(after?.hostUntilMs).toBeGreaterThan(before);
  });
});

describe('a full queue', () => {
  test('refuses new calls and knows the old ones; a burst does not pass it', async () => {
    const blocker = job('blocker', async (one) => {
      await pause(20_000, undefined, { signal: one.signal }).catch(() => undefined);
      return text('x');
    });
    const opened = await openEngineRig([blocker], {
      config: { limits: { workers: 1, queueDepth: 5 } },
    });
    rig = opened;
    const key = (n: number) => ({
      idempotency: { key: `call-${n}`, kind: 'explicit' as const },
      args: { n },
    });
    const first = await rig.start(blocker, key(0));
    while (rig.world.keyturn.engine.running() === 0) await pause(5);
    const burst = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => opened.start(blocker, key(n + 1))),
    );
    const refused = burst.filter((one) => one.status === 'rejected');
    expect(burst.length - refused.length).toBeLessThanOrEqual(6);
    expect(refused[0]?.reason).toMatchObject({
      reason: 'too_many_tasks',
      facts: { limit: 'queue', retryAfterMs: expect.any(Number) as number },
    });
    expect((await rig.start(blocker, key(0))).taskId).toBe(first.taskId);
  });
});

test('a cancel on another node of the same file ends the work at once', async () => {
  let begun = false;
  let ended = false;
  const tool = job('slow', async (one) => {
    begun = true;
    await pause(20_000, undefined, { signal: one.signal }).catch(() => undefined);
    ended = true;
    return text('x');
  });
  rig = await openEngineRig([tool], { config: { timing: { ...QUICK, leaseMs: 30_000 } } });
  const task = await rig.start(tool);
  while (!begun) await pause(5);
  // The first node is told by nothing but the file.
  const other = await rig.world.openNode();
  try {
    const startedAt = performance.now();
    await other.engine.tasks.cancel(rig.caller(), task.taskId);
    while (!ended) await pause(5);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  } finally {
    await other.stop();
  }
});

describe('what a job says', () => {
  test('last about its progress arrives, also when it stops straight after', async () => {
    const tool = job('tells', async (one) => {
      for (let done = 1; done <= 7; done += 1) one.progress({ done, total: 10 });
      await one.ask('go', { type: 'object', properties: { n: { type: 'integer' } } }, 'How many?');
      return text('x');
    });
    rig = await openEngineRig([tool]);
    const waiting = await rig.until((await rig.start(tool)).taskId, 'input_required');
    expect(waiting.progress).toMatchObject({ done: 7, total: 10 });
  });

  test('as its result has to be a result: anything else ends it as failed', async () => {
    const tool = job('says_nothing', (() => Promise.resolve(undefined)) as unknown as Parameters<
      typeof job
    >[1]);
    rig = await openEngineRig([tool]);
    const failed = await rig.until((await rig.start(tool)).taskId, 'failed');
    expect(failed.outcome).toMatchObject({ code: -32603, reason: 'job_failed' });
  });
});

test('a job that swallows its leave is left anyway, and what it returns does not count', async () => {
  const form = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const;
  const steps: string[] = [];
  async function stubborn(one: Job): Promise<ReturnType<typeof text>> {
    try {
      await one.ask('go', { ...form, required: [...form.required] }, 'Go on?');
      steps.push('answered');
    } catch {
      steps.push('caught');
    }
    return text('finished');
  }
  const tool = job('stubborn', stubborn);
  rig = await openEngineRig([tool]);
  const task = await rig.start(tool, { declared });
  await rig.until(task.taskId, 'input_required');
  await rig.world.keyturn.engine.tasks.answer(
    rig.caller(),
    task.taskId,
    new Map([['go', { action: 'accept', content: { ok: true } }]]),
  );
  await rig.until(task.taskId, 'completed');
  expect(steps).toEqual(['caught', 'answered']);
});
