import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineJob, text } from '../../src/engine/define.ts';
import {
  openMcpClient,
  type McpClient,
  type McpClientOptions,
  type WireTask,
} from '../support/mcp-client.ts';
import { callerNamed, modernRequest, openRig, type Rig } from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

/** Opens when a test says so; tells when somebody waits at it. */
function gate() {
  let open = (): void => undefined;
  let arrive = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  return {
    open: () => open(),
    arrived,
    async pass() {
      arrive();
      await opened;
    },
  };
}

const gates = new Map<string, ReturnType<typeof gate>>();

/** Waits at a gate before there is a task. */
const gated = defineJob({
  name: 'gated',
  description: 'Waits at a gate before it becomes a task.',
  input: z.object({ gate: z.string() }),
  async before({ args }) {
    await gates.get(args.gate)?.pass();
    return undefined;
  },
  async run(job) {
    await job.sleep(60_000);
    return text('done');
  },
});

let rig: Rig;
let url: string;
const clients: McpClient[] = [];

async function client(options: Partial<McpClientOptions> = {}): Promise<McpClient> {
  const opened = await openMcpClient({ url, token: () => 'alice', ...options });
  clients.push(opened);
  return opened;
}

beforeAll(async () => {
  rig = await openRig({ tools: [...TOOLS, gated], mcp: { holdMs: 700, listen: { keepAliveMs: 200 } } });
  url = await rig.listen();
});

afterAll(async () => {
  await Promise.all(clients.map((one) => one.close()));
  await rig.close();
});

const open = (as: string) => rig.engine.tasks.list(callerNamed(as), { after: null, limit: 100 });

describe('a client with tasks', () => {
  test('calls a job, is asked, answers and reads the result', async () => {
    const alice = await client();
    const called = await alice.call('confirm', { file: 'report.txt' });
    if (called.kind !== 'task') throw new Error('no handle came');
    const asked: string[] = [];
    const task = await alice.follow(called.task.taskId, {
      mostPauseMs: 50,
      onInput(key, request) {
        asked.push(`${key}: ${request.params.message}`);
        return { action: 'accept', content: { sure: true } };
      },
    });
    expect(asked).toEqual(['sure: Delete report.txt?']);
    expect(task).toMatchObject({
      status: 'completed',
      result: { content: [{ text: 'Deleted report.txt' }] },
    });
  });

  test('hears of every state on a stream, first of what is honoured', async () => {
    const messages: { method?: string; params?: Record<string, unknown> }[] = [];
    const alice = await client({
      onMessage: (message) => void messages.push(message as { method?: string }),
    });
    const bob = await client({ token: () => 'bob' });
    const mine = await alice.call('both');
    const theirs = await bob.call('work', { ms: 60_000 });
    if (mine.kind !== 'task' || theirs.kind !== 'task') throw new Error('no handles came');
    const { taskId } = mine.task;
    const heard: WireTask[] = [];
    const stream = await alice.listen(
      { taskIds: [taskId, theirs.task.taskId, 'task_unknown'], toolsListChanged: true },
      { task: (task) => void heard.push(task) },
    );
    const first = messages.find((message) => message.method?.startsWith('notifications/') === true);
    expect(first).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      // Foreign and unknown ids are left out alike.
      params: { notifications: { taskIds: [taskId], toolsListChanged: true } },
    });
    await expect.poll(() => heard.at(-1)?.status).toBe('input_required');
    expect(Object.keys(heard.at(-1)?.inputRequests ?? {}).toSorted()).toEqual(['first', 'second']);
    await alice.update(taskId, { first: { action: 'accept', content: { name: 'Ann' } } });
    await expect.poll(() => Object.keys(heard.at(-1)?.inputRequests ?? {})).toEqual(['second']);
    await alice.update(taskId, { second: { action: 'accept', content: { name: 'Bea' } } });
    await expect.poll(() => heard.at(-1)?.status).toBe('completed');
    expect(heard.at(-1)).toMatchObject({ result: { content: [{ text: 'Ann and Bea' }] } });
    expect(new Set(heard.map((task) => task.taskId))).toEqual(new Set([taskId]));
    // What came by the stream is what a poll would have said.
    const {
      _meta: _polled,
      resultType: _type,
      ...polled
    } = (await alice.get(taskId)) as never as Record<string, unknown>;
    const { _meta: _told, ...told } = heard.at(-1) as never as Record<string, unknown>;
    expect(told).toEqual(polled);
    await stream.close();
    await bob.cancel(theirs.task.taskId);
  });

  test('hears that the tools have changed, and only if it asked to', async () => {
    const alice = await client();
    const bob = await client({ token: () => 'bob' });
    let changed = 0;
    const seen: unknown[] = [];
    const listening = await alice.listen({ toolsListChanged: true }, { tools: () => (changed += 1) });
    const started = await bob.call('work', { ms: 60_000 });
    if (started.kind !== 'task') throw new Error('no handle came');
    const other = await bob.listen(
      { taskIds: [started.task.taskId] },
      { task: (task) => void seen.push(task), tools: () => seen.push('tools') },
    );
    await expect.poll(() => seen.length).toBeGreaterThan(0);
    rig.catalogue.replace([...TOOLS, gated]);
    await expect.poll(() => changed).toBe(1);
    await bob.cancel(started.task.taskId);
    await expect.poll(() => seen.at(-1)).toMatchObject({ status: 'cancelled' });
    expect(seen).not.toContain('tools');
    await Promise.all([listening.close(), other.close()]);
  });
});

describe('a client without tasks', () => {
  const plain = { elicitation: { form: {}, url: {} } };

  test('is asked within its call and gets the result of the same task', async () => {
    let prompts = 0;
    const erin = await client({
      token: () => 'erin',
      capabilities: plain,
      onElicit: () => {
        prompts += 1;
        return { action: 'accept', content: { sure: true } };
      },
    });
    const called = await erin.call('confirm', { file: 'a.txt' });
    expect(called).toMatchObject({ kind: 'result', result: { content: [{ text: 'Deleted a.txt' }] } });
    expect(prompts).toBe(1);
    expect(await open('erin')).toHaveLength(1);
  });

  test('waits over several legs for a long job', async () => {
    const types: unknown[] = [];
    const frank = await client({
      token: () => 'frank',
      capabilities: {},
      onMessage: (message) => {
        if ('result' in message) types.push((message.result as { resultType?: string }).resultType);
      },
    });
    const called = await frank.call('work', { ms: 1_800, label: 'slow' });
    expect(called).toMatchObject({ kind: 'result', result: { content: [{ text: 'slow: done' }] } });
    expect(types.filter((type) => type === 'input_required').length).toBeGreaterThanOrEqual(2);
    expect(await open('frank')).toHaveLength(1);
  });

  test('answers questions before the work one after the other', async () => {
    const grace = await client({
      token: () => 'grace',
      capabilities: plain,
      onElicit: ({ message }) => ({
        action: 'accept',
        content: message.includes('colour') ? { colour: 'red' } : { name: 'Grace' },
      }),
    });
    expect(await grace.call('interview')).toMatchObject({
      result: { content: [{ text: 'Grace likes red' }] },
    });
  });
});

describe('a person, and not a session or a connection,', () => {
  test('owns a task: after a restart and with a new token it is found, answered and cancelled by its owner alone', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyturn-restart-'));
    const first = await openRig({ tools: TOOLS, folder });
    const ids: string[] = [];
    let second: Rig | undefined;
    try {
      const before = await openMcpClient({ url: await first.listen(), token: () => 'alice' });
      for (const [tool, args] of [
        ['confirm', { file: 'x' }],
        ['work', { ms: 60_000 }],
      ] as const) {
        const called = await before.call(tool, args);
        if (called.kind !== 'task') throw new Error('no handle came');
        ids.push(called.task.taskId);
      }
      const [asking = '', working = ''] = ids;
      await before
        .follow(asking, { mostPauseMs: 50, onTask: stopAt('input_required') })
        .catch(() => undefined);
      await before.close();
      await first.close();

      second = await openRig({ tools: TOOLS, folder, keyring: first.keyring });
      const endpoint = await second.listen();
      const strangers = ['bob', 'carol', 'nobody@test-client'];
      for (const who of strangers) {
        const stranger = await openMcpClient({ url: endpoint, token: () => who });
        for (const id of [asking, working, 'task_AAAAAAAAAAAAAAAAAAAAAAAA']) {
          const refused = { code: -32602, data: { reason: 'task_unknown' } };
          await expect(stranger.get(id)).rejects.toMatchObject(refused);
          await expect(stranger.update(id, {})).rejects.toMatchObject(refused);
          await expect(stranger.cancel(id)).rejects.toMatchObject(refused);
        }
        await stranger.close();
      }
      const after = await openMcpClient({ url: endpoint, token: () => 'alice' });
      expect(await after.get(asking)).toMatchObject({
        status: 'input_required',
        inputRequests: { sure: {} },
      });
      await after.update(asking, { sure: { action: 'accept', content: { sure: false } } });
      expect(await after.follow(asking, { mostPauseMs: 50 })).toMatchObject({
        status: 'completed',
        result: { content: [{ text: 'Kept' }] },
      });
      expect(await after.get(working)).toMatchObject({ status: 'working' });
      await after.cancel(working);
      expect(await after.get(working)).toMatchObject({ status: 'cancelled' });
      await after.close();
    } finally {
      await second?.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** Ends a `follow` at a status. */
function stopAt(status: WireTask['status']): (task: WireTask) => void {
  return (task) => {
    if (task.status === status) throw new Error('far enough');
  };
}

/** Sends a call over a connection of its own, which can be cut. */
function send(call: Parameters<typeof modernRequest>[0]): { cut(): Promise<void> } {
  const { headers, body } = modernRequest(call);
  const noticed = new Promise<void>((resolve) => {
    rig.app.server.once('connection', (socket) => socket.once('close', () => resolve()));
  });
  const sent = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: { ...headers, 'content-length': Buffer.byteLength(body) },
  });
  sent.on('error', () => undefined);
  sent.end(body);
  return {
    /** Resolves when the server has seen it. */
    cut() {
      sent.destroy();
      return noticed;
    },
  };
}

describe('a connection that ends', () => {
  test('before a handle was sent cancels its task; the same call again starts one anew', async () => {
    const door = gate();
    gates.set('one', door);
    const params = { name: 'gated', arguments: { gate: 'one' } };
    const call = send({ method: 'tools/call', params, as: 'heidi' });
    await door.arrived;
    await call.cut();
    door.open();
    await expect.poll(async () => (await open('heidi')).map((task) => task.status)).toEqual(['cancelled']);
    const heidi = await client({ token: () => 'heidi' });
    const again = await heidi.call('gated', { gate: 'one' });
    expect(again.kind).toBe('task');
    expect((await open('heidi')).map((task) => task.status).toSorted()).toEqual(['cancelled', 'working']);
  });

  test('does not cancel a task whose client chose a key for it: the same call finds it', async () => {
    const door = gate();
    gates.set('two', door);
    const params = { name: 'gated', arguments: { gate: 'two' } };
    const meta = { 'keyturn/idempotencyKey': 'ivan-1' };
    const call = send({ method: 'tools/call', params, as: 'ivan', meta });
    await door.arrived;
    await call.cut();
    door.open();
    await expect.poll(async () => (await open('ivan')).map((task) => task.status)).toEqual(['working']);
    const ivan = await client({ token: () => 'ivan' });
    const again = await ivan.call('gated', { gate: 'two' }, { meta });
    const known = await open('ivan');
    expect(known).toHaveLength(1);
    expect(again).toMatchObject({ kind: 'task', task: { taskId: known[0]?.taskId, status: 'working' } });
  });

  test('during the first wait of a call without handles cancels the task; the call anew runs once more', async () => {
    const call = send({
      method: 'tools/call',
      params: { name: 'work', arguments: { ms: 60_000, label: 'j' } },
      as: 'judy',
      capabilities: {},
    });
    await expect.poll(async () => (await open('judy')).length).toBe(1);
    await call.cut();
    await expect.poll(async () => (await open('judy')).map((task) => task.status)).toEqual(['cancelled']);
    const again = send({
      method: 'tools/call',
      params: { name: 'work', arguments: { ms: 60_000, label: 'j' } },
      as: 'judy',
      capabilities: {},
    });
    await expect
      .poll(async () => (await open('judy')).map((task) => task.status).toSorted())
      .toEqual(['cancelled', 'working']);
    await again.cut();
  });

  test('after a handle was sent ends nothing', async () => {
    const kim = await client({ token: () => 'kim' });
    const called = await kim.call('work', { ms: 60_000 });
    await kim.close();
    expect(called.kind).toBe('task');
    const again = await client({ token: () => 'kim' });
    expect(await again.get(called.kind === 'task' ? called.task.taskId : '')).toMatchObject({
      status: 'working',
    });
  });
});
