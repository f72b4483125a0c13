/** Tasks of MCP 2025-11-25 with the SDK's own client over sockets. */
import { CallToolResultSchema, ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refusalOutcome } from '../../src/store/waits.ts';
import { connectClient } from '../support/legacy-client.ts';
import { makePlace, startLegacyServer, type LegacyServer } from '../support/legacy-server.ts';

type Peer = Awaited<ReturnType<typeof connectClient>>;

let place: Awaited<ReturnType<typeof makePlace>>;
let server: LegacyServer;
const peers: Peer[] = [];

beforeEach(async () => {
  place = await makePlace();
  server = await startLegacyServer(place);
});

afterEach(async () => {
  await Promise.allSettled(peers.splice(0).map((peer) => peer.close()));
  await server.close();
  await place.remove();
});

async function peer(token: string, options: Parameters<typeof connectClient>[2] = {}): Promise<Peer> {
  const connected = await connectClient(server.url, token, options);
  peers.push(connected);
  return connected;
}

async function startTask(one: Peer, args: Record<string, unknown> = { source: 'a' }) {
  const stream = one.client.experimental.tasks.callToolStream(
    { name: 'ingest', arguments: args },
    undefined,
    {
      task: { ttl: 600_000 },
    },
  );
  const first = await stream.next();
  if (first.done === true || first.value.type !== 'taskCreated') throw new Error('no task was created');
  return { task: first.value.task, stream };
}

async function errorOf(promise: Promise<unknown>): Promise<McpError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof McpError)) throw new Error('no protocol error', { cause: error });
  return error;
}

const resultOf = (one: Peer, taskId: string) =>
  one.client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);

test('a task is created, asked for, finished and read by the experimental stream of the SDK', async () => {
  const alice = await peer('alice-token', { answer: () => ({ action: 'accept' }) });
  const { task, stream } = await startTask(alice);
  expect(task).toMatchObject({ status: 'working', ttl: 600_000 });
  const running = await server.claim();
  expect(running.id).toBe(task.taskId);
  await server.stop(running, [await server.signInNeed(running.owner)]);
  const seen: string[] = [];
  const reading = (async () => {
    for await (const message of stream) {
      seen.push(message.type === 'taskStatus' ? message.task.status : message.type);
      if (message.type === 'result') return message.result;
    }
    return undefined;
  })();
  await alice.until(() => alice.asked.length === 1);
  const [asked] = alice.asked;
  expect(asked).toMatchObject({
    mode: 'url',
    _meta: { 'io.modelcontextprotocol/related-task': { taskId: task.taskId } },
  });
  const { elicitationId, url } = asked as { elicitationId: string; url: string };
  expect(url).toBe(`https://keyturn.example/connect/${elicitationId}`);
  await server.signIn(elicitationId);
  await alice.until(() => alice.completed.length === 1);
  expect(alice.completed).toEqual([elicitationId]);
  await server.finish(await server.claim(), { content: [{ type: 'text', text: 'read 3' }] });
  expect(await reading).toMatchObject({
    content: [{ type: 'text', text: 'read 3' }],
    _meta: { 'io.modelcontextprotocol/related-task': { taskId: task.taskId } },
  });
  expect(seen).toEqual(['input_required', 'result']);
  expect(alice.asked).toHaveLength(1);
});

test('a task handle names what a model may be told at once', async () => {
  const alice = await peer('alice-token');
  const created = await alice.client.request(
    { method: 'tools/call', params: { name: 'ingest', arguments: { source: 'a' }, task: {} } },
    (await import('@modelcontextprotocol/sdk/types.js')).CreateTaskResultSchema,
  );
  expect(created._meta?.['io.modelcontextprotocol/model-immediate-response']).toContain('has started');
});

describe('the link', () => {
  test('is delivered to a result stream that was opened before it was needed', async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    const result = resultOf(alice, task.taskId);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    await alice.until(() => alice.asked.length === 1);
    await server.signIn((alice.asked[0] as { elicitationId: string }).elicitationId);
    await server.finish(await server.claim(), { content: [] });
    expect(await result).toMatchObject({ content: [] });
  });

  test('is delivered again when the stream is lost before an answer, and not after one', async () => {
    const lost = await peer('alice-token');
    const { task } = await startTask(lost);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const first = resultOf(lost, task.taskId).catch(() => undefined);
    await lost.until(() => lost.asked.length === 1);
    await lost.close();
    await first;

    const again = await peer('alice-token', { answer: () => ({ action: 'accept' }) });
    const second = resultOf(again, task.taskId).catch(() => undefined);
    await again.until(() => again.asked.length === 1);
    expect(again.asked[0]).toMatchObject({
      elicitationId: (lost.asked[0] as { elicitationId: string }).elicitationId,
    });
    await expect
      .poll(async () => (await server.ledger.readTask(task.taskId))?.asked[0]?.action, { timeout: 5_000 })
      .toBe('accept');
    await again.close();
    await second;

    const third = await peer('alice-token');
    const result = resultOf(third, task.taskId);
    await server.signIn((lost.asked[0] as { elicitationId: string }).elicitationId);
    await server.finish(await server.claim(), { content: [] });
    await result;
    expect(third.asked).toEqual([]);
  });

  test('is shown once when two result streams are open, by the second when the first one goes', async () => {
    const one = await peer('alice-token');
    const two = await peer('alice-token');
    const { task } = await startTask(one);
    const stop = new AbortController();
    const first = one.client.experimental.tasks
      .getTaskResult(task.taskId, CallToolResultSchema, { signal: stop.signal })
      .catch(() => undefined);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    await one.until(() => one.asked.length === 1);
    const second = resultOf(two, task.taskId);
    await expect.poll(() => server.changes.watched()).toBe(1);
    await two.client.ping();
    expect(two.asked).toEqual([]);
    stop.abort('enough');
    await first;
    await two.until(() => two.asked.length === 1);
    expect(one.asked).toHaveLength(1);
    expect(two.asked).toHaveLength(1);
    await server.signIn((two.asked[0] as { elicitationId: string }).elicitationId);
    await server.finish(await server.claim(), { content: [{ type: 'text', text: 'x' }] });
    expect(await second).toMatchObject({ content: [{ text: 'x' }] });
  });

  test('reaches a client that goes on polling instead of opening its result stream, on its stream of server messages', async () => {
    const alice = await peer('alice-token', { answer: () => ({ action: 'accept' }) });
    const { task } = await startTask(alice);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const poll = () => alice.client.experimental.tasks.getTask(task.taskId);
    // Whoever has heard of the question once may be about to open the result stream, which shows it.
    expect(await poll()).toMatchObject({ status: 'input_required' });
    await alice.client.ping();
    expect(alice.asked).toEqual([]);
    await poll();
    await alice.until(() => alice.asked.length === 1);
    expect(alice.asked[0]).toMatchObject({
      mode: 'url',
      _meta: { 'io.modelcontextprotocol/related-task': { taskId: task.taskId } },
    });
    await server.signIn((alice.asked[0] as { elicitationId: string }).elicitationId);
    await server.finish(await server.claim(), { content: [{ type: 'text', text: 'read 3' }] });
    expect(await poll()).toMatchObject({ status: 'completed' });
    expect(await resultOf(alice, task.taskId)).toMatchObject({ content: [{ text: 'read 3' }] });
    expect(alice.asked).toHaveLength(1);
  });

  test('is shown once to a client that both polls and waits for the result, and again when that stream is lost', async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const stop = new AbortController();
    const waiting = alice.client.experimental.tasks
      .getTaskResult(task.taskId, CallToolResultSchema, { signal: stop.signal })
      .catch(() => undefined);
    await alice.until(() => alice.asked.length === 1);
    const poll = () => alice.client.experimental.tasks.getTask(task.taskId);
    for (let polls = 0; polls < 3; polls += 1) await poll();
    expect(alice.asked).toHaveLength(1);
    stop.abort('enough');
    await waiting;
    await poll();
    await alice.until(() => alice.asked.length === 2);
    expect(alice.asked[1]).toMatchObject({
      elicitationId: (alice.asked[0] as { elicitationId: string }).elicitationId,
    });
  });

  test('is not shown to a client that only polls and has no stream: the status says what to do, and the task ends at its deadline', async () => {
    const alice = await peer('alice-token', {
      fetch: (input, init) =>
        init?.method === 'GET' ? Promise.resolve(new Response(null, { status: 405 })) : fetch(input, init),
    });
    const { task } = await startTask(alice);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)], 300);
    const waiting = await alice.client.experimental.tasks.getTask(task.taskId);
    expect(waiting).toMatchObject({ status: 'input_required' });
    expect(waiting.statusMessage).toContain('tasks/result');
    await expect
      .poll(async () => (await alice.client.experimental.tasks.getTask(task.taskId)).status, {
        timeout: 5_000,
      })
      .toBe('failed');
    const over = await alice.client.experimental.tasks.getTask(task.taskId);
    expect(over.statusMessage).toContain('deadline_passed');
    expect(over.statusMessage).toContain('Start the task again');
    expect(await errorOf(resultOf(alice, task.taskId))).toMatchObject({
      code: 4011,
      data: { reason: 'deadline_passed' },
    });
    expect(alice.asked).toEqual([]);
  });
});

describe('answers', () => {
  async function waitingTask(answer: Parameters<typeof connectClient>[2]) {
    const alice = await peer('alice-token', answer);
    const { task } = await startTask(alice);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    return { alice, task, result: resultOf(alice, task.taskId) };
  }

  test('a decline fails the task with code 4010', async () => {
    const { alice, task, result } = await waitingTask({ answer: () => ({ action: 'decline' }) });
    expect(await errorOf(result)).toMatchObject({ code: 4010, data: { reason: 'authorization_declined' } });
    const after = await alice.client.experimental.tasks.getTask(task.taskId);
    expect(after.status).toBe('failed');
    expect(after.statusMessage).toContain('authorization_declined');
    // Whoever opens the link now finds it over.
    await expect(server.signIn((alice.asked[0] as { elicitationId: string }).elicitationId)).rejects.toThrow(
      'over',
    );
  });

  test('a cancel cancels the task', async () => {
    const { alice, task, result } = await waitingTask({ answer: () => ({ action: 'cancel' }) });
    expect(await errorOf(result)).toMatchObject({ data: { reason: 'task_cancelled' } });
    expect((await alice.client.experimental.tasks.getTask(task.taskId)).status).toBe('cancelled');
  });

  test('an error of the client changes nothing, and the link is delivered again on the next stream', async () => {
    const { alice, task, result } = await waitingTask({
      answer: () => {
        throw new McpError(ErrorCode.InternalError, 'no window');
      },
    });
    void result.catch(() => undefined);
    await alice.until(() => alice.asked.length === 1);
    await alice.close();
    const again = await peer('alice-token', { answer: () => ({ action: 'accept' }) });
    void resultOf(again, task.taskId).catch(() => undefined);
    await again.until(() => again.asked.length === 1);
    await expect
      .poll(async () => (await server.ledger.readTask(task.taskId))?.asked[0]?.action, { timeout: 5_000 })
      .toBe('accept');
    expect((await again.client.experimental.tasks.getTask(task.taskId)).status).toBe('input_required');
    await server.signIn((again.asked[0] as { elicitationId: string }).elicitationId);
    expect((await again.client.experimental.tasks.getTask(task.taskId)).status).toBe('working');
  });

  test('a dismissed question of a job that waits stays open', async () => {
    const alice = await peer('alice-token', { answer: () => ({ action: 'cancel' }) });
    const stream = alice.client.experimental.tasks.callToolStream({ name: 'patient' }, undefined, {
      task: {},
    });
    const first = await stream.next();
    if (first.done === true || first.value.type !== 'taskCreated') throw new Error('no task');
    const { taskId } = first.value.task;
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    void resultOf(alice, taskId).catch(() => undefined);
    await alice.until(() => alice.asked.length === 1);
    await alice.client.ping();
    expect((await alice.client.experimental.tasks.getTask(taskId)).status).toBe('input_required');
  });

  test('a form is answered on the result stream; content that does not fit is asked again', async () => {
    const contents = [{ user_name: '' }, { user_name: 'Alice' }];
    const alice = await peer('alice-token', {
      answer: () => ({ action: 'accept', content: contents.shift() ?? {} }),
    });
    const { task } = await startTask(alice);
    const running = await server.claim();
    await server.stop(running, [server.formNeed()]);
    const result = resultOf(alice, task.taskId);
    const resumed = await server.claim();
    expect(await server.ledger.readAnswers(resumed.id)).toMatchObject([{ content: { user_name: 'Alice' } }]);
    expect(alice.asked).toHaveLength(2);
    expect(alice.asked[0]).toMatchObject({ mode: 'form', message: 'Your name?' });
    expect(alice.asked[1]?.message).toContain('user_name');
    await server.finish(resumed, { content: [] });
    await result;
  });
});

describe('endings', () => {
  test("a tool's own failure is a failed task whose result is still the tool result", async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    await server.finish(await server.claim(), {
      content: [{ type: 'text', text: 'The source is empty.' }],
      isError: true,
    });
    const after = await alice.client.experimental.tasks.getTask(task.taskId);
    expect(after.status).toBe('failed');
    expect(after.statusMessage).toContain('The source is empty.');
    expect(await resultOf(alice, task.taskId)).toMatchObject({ isError: true });
    expect(await errorOf(alice.client.experimental.tasks.cancelTask(task.taskId))).toMatchObject({
      code: -32602,
    });
  });

  test('a refusal is a failed task whose result is an error with code, reason and advice', async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    await server.finish(await server.claim(), refusalOutcome('access_denied'));
    const after = await alice.client.experimental.tasks.getTask(task.taskId);
    expect(after).toMatchObject({ status: 'failed' });
    expect(after.statusMessage).toMatch(/allow the access.*access_denied/);
    const error = await errorOf(resultOf(alice, task.taskId));
    expect(error).toMatchObject({ code: 4013, data: { reason: 'access_denied' } });
  });

  test('an error that the job chose is the error that the result answers', async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    await server.finish(await server.claim(), {
      kind: 'error',
      code: -32011,
      message: 'No such shelf',
      reason: 'protocol',
      facts: {},
    });
    expect(await errorOf(resultOf(alice, task.taskId))).toMatchObject({ code: -32011 });
  });

  test('a cancel is in the ledger before its answer; a second one is refused; the result is an error', async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    const running = await server.claim();
    const waiting = errorOf(resultOf(alice, task.taskId));
    const cancelled = await alice.client.experimental.tasks.cancelTask(task.taskId);
    expect(cancelled).toMatchObject({ taskId: task.taskId, status: 'cancelled' });
    expect((await server.ledger.readTask(task.taskId))?.task.status).toBe('cancelled');
    await expect(server.finish(running, { content: [] })).rejects.toThrow('lost');
    expect(await waiting).toMatchObject({ data: { reason: 'task_cancelled' } });
    expect(await errorOf(alice.client.experimental.tasks.cancelTask(task.taskId))).toMatchObject({
      code: -32602,
    });
    expect(await errorOf(resultOf(alice, task.taskId))).toMatchObject({ data: { reason: 'task_cancelled' } });
  });

  test('a cancelled request ends the wait, not the task', async () => {
    const alice = await peer('alice-token');
    const { task } = await startTask(alice);
    const stop = new AbortController();
    const waiting = alice.client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema, {
      signal: stop.signal,
    });
    await alice.client.ping();
    stop.abort('enough');
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => server.changes.watched()).toBe(1);
    expect((await alice.client.experimental.tasks.getTask(task.taskId)).status).toBe('working');
  });

  test('an unknown task is -32602 for every method', async () => {
    const { client } = await peer('alice-token');
    const { tasks } = client.experimental;
    for (const call of [
      tasks.getTask('task_unknown'),
      tasks.cancelTask('task_unknown'),
      tasks.getTaskResult('task_unknown', CallToolResultSchema),
    ]) {
      expect(await errorOf(call)).toMatchObject({ code: -32602, data: { reason: 'task_unknown' } });
    }
  });
});

test('tools declare how they may be called, and calls in another way are -32601', async () => {
  const { client } = await peer('alice-token');
  const { tools } = await client.listTools();
  const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport]));
  expect(support).toMatchObject({ greet: 'forbidden', ingest: 'optional', only_task: 'required' });
  const { CreateTaskResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const params = { name: 'greet', arguments: {}, task: {} };
  expect(
    await errorOf(client.request({ method: 'tools/call', params }, CreateTaskResultSchema)),
  ).toMatchObject({
    code: -32601,
  });
  const plain = client.request({ method: 'tools/call', params: { name: 'only_task' } }, CallToolResultSchema);
  expect(await errorOf(plain)).toMatchObject({ code: -32601 });
});

test('progress under the token of the original call goes on while the result is waited for', async () => {
  const alice = await peer('alice-token');
  const told: number[] = [];
  const stream = alice.client.experimental.tasks.callToolStream(
    { name: 'ingest', arguments: { source: 'a' } },
    undefined,
    { task: {}, onprogress: ({ progress }) => told.push(progress) },
  );
  const first = await stream.next();
  if (first.done === true || first.value.type !== 'taskCreated') throw new Error('no task');
  const running = await server.claim();
  const result = resultOf(alice, first.value.task.taskId);
  await alice.client.ping();
  await server.tell(running, { done: 1, total: 3 });
  await expect.poll(() => told.some((value) => value >= 1)).toBe(true);
  await server.tell(running, { done: 2, total: 3 });
  await expect.poll(() => told.some((value) => value >= 2)).toBe(true);
  await server.finish(running, { content: [] });
  await result;
  expect(told).toEqual(told.toSorted((a, b) => a - b));
  expect(new Set(told).size).toBe(told.length);
});
