import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openKeyturn } from '../../src/app.ts';
import { readConfig, type ConfigInput } from '../../src/config.ts';
import { generateKey } from '../../src/vault/keyring.ts';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { defineJob, text, type JobDefinition } from '../../src/engine/define.ts';
import { implicitKey } from '../../src/task/idempotency.ts';
import type { TaskSnapshot } from '../../src/engine/tasks.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld, type World } from '../../src/world.ts';

let world: World | undefined;
let slow: Server | undefined;

beforeEach(() => {
  world = undefined;
  slow = undefined;
});

afterEach(async () => {
  await world?.close();
  slow?.closeAllConnections();
  slow?.close();
});

const MANY = 1_000;
const QUICK = { leaseMs: 900, sweepEveryMs: 100, graceMs: 300 };
const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };

async function open(tools: JobDefinition[], config: Partial<ConfigInput> = {}): Promise<World> {
  world = await openWorld({ tools, config: { timing: QUICK, log: { level: 'silent' }, ...config } });
  return world;
}

function caller(who = 'alice') {
  return {
    owner: ownerOf({ issuer: world?.sandbox.issuer.issuer ?? '', subject: who }),
    clientId: 'test',
    scopes: [],
  };
}

async function start(job: JobDefinition, more: Partial<Parameters<typeof begin>[1]> = {}, who = 'alice') {
  return begin(who, { job, args: {}, declared, ...more });
}

async function begin(
  who: string,
  call: Parameters<NonNullable<typeof world>['keyturn']['engine']['tasks']['start']>[1],
) {
  if (world === undefined) throw new Error('no world');
  return (await world.keyturn.engine.tasks.start(caller(who), call)).task;
}

/** Follows a task until it has a state. */
async function until(taskId: string, status: TaskSnapshot['status'], who = 'alice'): Promise<TaskSnapshot> {
  if (world === undefined) throw new Error('no world');
  const { tasks } = world.keyturn.engine;
  const giveUpAt = Date.now() + 15_000;
  for (let rev = -1; ;) {
    const task = await tasks.waitForChange(caller(who), taskId, {
      beyondRev: rev,
      timeoutMs: 1_000,
      signal: AbortSignal.timeout(1_000),
    });
    if (task === undefined) throw new Error('the task is unknown');
    if (task.status === status) return task;
    if (Date.now() > giveUpAt) throw new Error(`it stayed ${task.status}: ${task.statusMessage ?? ''}`);
    rev = task.rev;
  }
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Timers, sockets and the like that keep this process going, and the heap after a collection. */
function footprint(): { resources: number; heapBytes: number } {
  collectGarbage();
  return {
    resources: process.getActiveResourcesInfo().length,
    heapBytes: process.memoryUsage().heapUsed,
  };
}

const job = (name: string, run: JobDefinition['run'], more: Partial<JobDefinition> = {}): JobDefinition => ({
  ...defineJob({ name, description: name, run }),
  ...more,
});

describe('a cancel ends the work', () => {
  async function teardownOf(tool: JobDefinition, running: () => boolean): Promise<number> {
    const one = await open([tool]);
    const task = await start(tool);
    while (!running()) await pause(10);
    const startedAt = performance.now();
    await one.keyturn.engine.tasks.cancel(caller(), task.taskId);
    while (one.keyturn.engine.running() > 0) await pause(5);
    const ms = performance.now() - startedAt;
    expect((await until(task.taskId, 'cancelled')).status).toBe('cancelled');
    return ms;
  }

  test('inside an HTTP request that is never answered', async () => {
    let reached = false;
    slow = createServer(() => {
      reached = true;
    });
    await new Promise<void>((up) => {
      slow?.listen(0, '127.0.0.1', up);
    });
    const { port } = slow.address() as AddressInfo;
    const tool = job('slow_request', async (one) => {
      await fetch(`http://127.0.0.1:${port}/`, { signal: one.signal });
      return text('never');
    });
    expect(await teardownOf(tool, () => reached)).toBeLessThan(5_000);
  });

  test('in a loop that saves checkpoints', async () => {
    let rounds = 0;
    const tool = job('busy_loop', async (one) => {
      for (;;) {
        rounds += 1;
        await one.save({ rounds });
      }
    });
    expect(await teardownOf(tool, () => rounds > 3)).toBeLessThan(5_000);
    const after = rounds;
    await pause(100);
    expect(rounds).toBe(after);
  });

  test('in a child process that ignores SIGTERM, and leaves no process behind', async () => {
    const mark = `keyturn-test-${process.pid}-${Date.now()}`;
    let begun = false;
    const alive = (): string[] => {
      const list = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
      return list.split('\n').filter((line) => line.includes(mark) && !line.startsWith('ps '));
    };
    const tool = job('stubborn_child', async (one) => {
      begun = true;
      await one.spawn('sh', ['-c', `trap "" TERM; while true; do sleep 0.1; done # ${mark}`]);
      return text('never');
    });
    const ms = await teardownOf(tool, () => begun && alive().length > 0);
    expect(ms).toBeGreaterThan(1_500);
    expect(ms).toBeLessThan(15_000);
    expect(alive()).toEqual([]);
  });
});

describe('waiting without a worker', () => {
  test('a durable timer runs out once, and is not slept again by the run that follows', async () => {
    let runs = 0;
    const tool = job('sleeper', async (one) => {
      runs += 1;
      await one.sleep(3_200);
      return text(`runs ${runs}`);
    });
    const one = await open([tool]);
    const task = await start(tool);
    while (runs === 0) await pause(5);
    await pause(100);
    expect(one.keyturn.engine.running()).toBe(0);
    const done = await until(task.taskId, 'completed');
    expect(done.outcome).toMatchObject({ result: { content: [{ text: 'runs 2' }] } });
  });

  test('several questions are asked at once, answered in parts, and a bad answer leaves its question open', async () => {
    const tool = job('asker', async (one) => {
      const answers = await one.askAll({
        folder: {
          schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          message: 'Which folder?',
        },
        count: {
          schema: { type: 'object', properties: { n: { type: 'integer', maximum: 9 } }, required: ['n'] },
          message: 'How many?',
        },
      });
      return text(JSON.stringify(answers));
    });
    const one = await open([tool]);
    const task = await start(tool);
    const asked = await until(task.taskId, 'input_required');
    expect(asked.inputs.map((input) => input.key).toSorted()).toEqual(['count', 'folder']);
    const answer = (key: string, content: unknown) =>
      one.keyturn.engine.tasks.answer(caller(), task.taskId, new Map([[key, { action: 'accept', content }]]));
    await answer('folder', { name: 'inbox' });
    expect((await answer('count', { n: 99 }))?.problems).toHaveProperty('count');
    const left = await until(task.taskId, 'input_required');
    expect(left.inputs.map((input) => input.key)).toEqual(['count']);
    await answer('count', { n: 3 });
    const done = await until(task.taskId, 'completed');
    expect(done.outcome).toMatchObject({
      result: { content: [{ text: '{"folder":{"name":"inbox"},"count":{"n":3}}' }] },
    });
  });

  test('a question that looks like a secret ends the job, and is never asked', async () => {
    const tool = job('phisher', async (one) => {
      await one.ask('login', { type: 'object', properties: { password: { type: 'string' } } }, 'Password?');
      return text('never');
    });
    await open([tool]);
    const failed = await until((await start(tool)).taskId, 'failed');
    expect(failed.outcome).toMatchObject({ code: -32603, reason: 'job_failed' });
  });

  test(`${MANY} tasks start, stop and resume with eight workers, and a waiting one holds nothing`, async () => {
    const form = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const;
    let finished = 0;
    const tool = job('asks_once', async (one) => {
      await one.ask('go', { ...form, required: [...form.required] }, 'Go on?');
      finished += 1;
      return text('went on');
    });
    const one = await open([tool], {
      limits: {
        workers: 8,
        runningPerOwner: 8,
        openPerOwner: 2_000,
        requestsPerMinute: 1e9,
        pagesPerMinute: 1e9,
      },
    });
    const { tasks } = one.keyturn.engine;
    await pause(50);
    const before = footprint();
    const ids = await Promise.all(
      Array.from({ length: MANY }, async (_, n) => (await start(tool, { args: { n } })).taskId),
    );
    for (const id of ids) await until(id, 'input_required');
    while (one.keyturn.engine.running() > 0) await pause(5);
    expect(one.keyturn.engine.changes.watched()).toBe(0);
    // Timers and sockets of the waiting tasks: none. What is left of them here is the pollers' cache.
    await pause(1_100);
    const during = footprint();
    expect(during.resources).toBeLessThanOrEqual(before.resources + 2);
    expect(during.heapBytes - before.heapBytes).toBeLessThan(MANY * 12_000);
    await Promise.all(
      ids.map((id) =>
        tasks.answer(caller(), id, new Map([['go', { action: 'accept', content: { ok: true } }]])),
      ),
    );
    for (const id of ids) await until(id, 'completed');
    expect(finished).toBe(MANY);
  }, 120_000);
});

describe('people who are not there', () => {
  const needs = { requires: { paperboat: { scopes: ['records:read'] } } };

  test('a job that may never ask ends at once when it needs a person', async () => {
    const tool = job('headless', () => Promise.resolve(text('x')), { ...needs, interaction: 'never' });
    await open([tool]);
    const failed = await until((await start(tool)).taskId, 'failed');
    expect(failed.outcome).toMatchObject({ code: 4017, reason: 'interaction_forbidden' });
  });

  test('a call may forbid what its job allows, and not allow what its job forbids', async () => {
    const asks = job('asks', () => Promise.resolve(text('x')), needs);
    const never = job('never_asks', () => Promise.resolve(text('x')), { ...needs, interaction: 'never' });
    await open([asks, never]);
    for (const task of [
      await start(asks, { interaction: 'never' }),
      await start(never, { interaction: 'interactive' }),
    ]) {
      const failed = await until(task.taskId, 'failed');
      expect(failed.outcome).toMatchObject({
        reason: 'interaction_forbidden',
        facts: { needs: ['paperboat'] },
      });
    }
  });

  test('a client that shows no links gets its task ended with advice, and no link is made', async () => {
    const tool = job('needs_link', () => Promise.resolve(text('x')), needs);
    await open([tool]);
    const task = await start(tool, { declared: { ...declared, modes: { form: true, url: false } } });
    const failed = await until(task.taskId, 'failed');
    expect(failed.outcome).toMatchObject({
      code: 4012,
      facts: { requiredCapabilities: { elicitation: { url: {} } } },
    });
  });

  test('a task whose host stops polling ends, and its work stops', async () => {
    let rounds = 0;
    const tool = job(
      'lonely',
      async (one) => {
        for (;;) {
          rounds += 1;
          await one.save({ rounds });
          await one.sleep(20);
        }
      },
      { hostLeaseMs: 600 },
    );
    const one = await open([tool]);
    const task = await start(tool);
    // Polled for longer than the lease, it lives on.
    for (let polls = 0; polls < 10; polls += 1) {
      await pause(100);
      expect((await one.keyturn.engine.tasks.read(caller(), task.taskId))?.status).toBe('working');
    }
    await pause(1_200);
    const ended = await one.keyturn.engine.tasks.read(caller(), task.taskId);
    expect(ended?.outcome).toMatchObject({ code: 4014, reason: 'host_gone' });
    while (one.keyturn.engine.running() > 0) await pause(10);
    const after = rounds;
    await pause(200);
    expect(rounds).toBe(after);
  });
});

describe('limits', () => {
  test('over its limit an owner gets a clear error and nothing is half-created; others are not touched', async () => {
    const tool = job('waits', async (one) => {
      await one.ask('go', { type: 'object', properties: { ok: { type: 'boolean' } } }, 'Go on?');
      return text('x');
    });
    await open([tool], { limits: { openPerOwner: 2 } });
    await start(tool, { args: { n: 1 } });
    await start(tool, { args: { n: 2 } });
    await expect(start(tool, { args: { n: 3 } })).rejects.toMatchObject({
      reason: 'too_many_tasks',
      facts: { limit: 'owner', retryAfterMs: expect.any(Number) as number },
    });
    await expect(start(tool, { args: { n: 1 } }, 'bob')).resolves.toMatchObject({ status: 'working' });
  });

  test('one owner with many tasks does not starve another', async () => {
    const order: string[] = [];
    const tool = job('short', async (one) => {
      await pause(20);
      order.push(one.owner.endsWith('bob') ? 'bob' : 'alice');
      return text('x');
    });
    await open([tool], { limits: { workers: 2, runningPerOwner: 2 } });
    const many = await Promise.all(Array.from({ length: 40 }, (_, n) => start(tool, { args: { n } })));
    const bobs = await start(tool, {}, 'bob');
    await until(bobs.taskId, 'completed', 'bob');
    expect(order.indexOf('bob')).toBeLessThan(15);
    for (const task of many) await until(task.taskId, 'completed');
  });

  test('fifty equal calls at once are one task and one run', async () => {
    let runs = 0;
    const tool = job(
      'once',
      async () => {
        runs += 1;
        await pause(50);
        return text('x');
      },
      { input: z.object({ a: z.number().optional() }) },
    );
    await open([tool]);
    const tasks = await Promise.all(
      Array.from({ length: 50 }, () => start(tool, { args: { a: 1 }, idempotency: implicitKey({ a: 1 }) })),
    );
    expect(new Set(tasks.map((task) => task.taskId)).size).toBe(1);
    await until(tasks[0]?.taskId ?? '', 'completed');
    expect(runs).toBe(1);
  });
});

describe('restarts', () => {
  test('a node that was opened and not started runs nothing, whatever it hears', async () => {
    let runs = 0;
    const tool = job('counted', () => {
      runs += 1;
      return Promise.resolve(text('x'));
    });
    const quiet = await openKeyturn(
      readConfig({
        name: 'Quiet',
        publicUrl: 'http://localhost:1',
        issuer: { url: 'http://127.0.0.2:1', client: { id: 'x' } },
        ledger: { file: join(mkdtempSync(join(tmpdir(), 'keyturn-quiet-')), 'l.sqlite') },
        tools: [tool],
        log: { level: 'silent' },
      }),
      { env: { KEYTURN_VAULT_KEYS: generateKey().entry.reveal() } },
    );
    const who = { owner: 'http://127.0.0.2:1#alice', clientId: 'test', scopes: [] };
    await quiet.engine.tasks.start(who, { job: tool, args: {}, declared });
    await pause(150);
    expect(runs).toBe(0);
    quiet.start();
    while (runs === 0) await pause(5);
    await quiet.stop();
  });

  test('a stop hands running work back at its checkpoint, and the next start goes on from there', async () => {
    const seen: number[] = [];
    const tool = job('counts', async (one) => {
      const from = (one.checkpoint as { n: number } | null)?.n ?? 0;
      for (let n = from; n < 60; n += 1) {
        seen.push(n);
        await one.save({ n: n + 1 });
        await one.sleep(10);
      }
      return text('60');
    });
    const one = await open([tool]);
    const task = await start(tool);
    while (seen.length < 5) await pause(5);
    await one.restart();
    await until(task.taskId, 'completed');
    expect(new Set(seen).size).toBe(60);
    // At most the step in flight was done twice.
    expect(seen.length).toBeLessThanOrEqual(61);
  });

  test('a provider that is down parks the task without a link, and the work goes on when it is back', async () => {
    const { tasks, tool } = await (async () => {
      const records = job(
        'one_page',
        async (one) => {
          const answer = await one.api('paperboat').get(`${world?.sandbox.saas.origin}/api/records?limit=1`);
          return text(String(answer.status));
        },
        { requires: { paperboat: { scopes: ['records:read'] } } },
      );
      const opened = await open([records]);
      return { tasks: opened.keyturn.engine.tasks, tool: records };
    })();
    const first = await start(tool);
    const waiting = await until(first.taskId, 'input_required');
    await openPerson().signInEverywhere(waiting.inputs[0]?.url ?? '', { as: 'alice' });
    await until(first.taskId, 'completed');
    for (let times = 0; times < 7; times += 1) world?.sandbox.saas.failNext('api-unavailable');
    const second = await start(tool, { args: { again: true } });
    const done = await until(second.taskId, 'completed');
    expect(done.outcome).toMatchObject({ result: { content: [{ text: '200' }] } });
    expect((await tasks.read(caller(), second.taskId))?.inputs).toEqual([]);
  }, 30_000);
});
