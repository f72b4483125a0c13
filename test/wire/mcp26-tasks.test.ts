import { afterAll, beforeAll, expect, test } from 'vitest';
import { secret } from '../../src/secret.ts';
import { callerNamed, CAPABLE, openRig, rpc, TASKS, type Rig } from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await openRig({ tools: TOOLS, mcp: { holdMs: 5_000 } });
});

afterAll(() => rig.close());

const call = (name: string, args: Record<string, unknown> = {}, more: Record<string, unknown> = {}) =>
  rpc(rig, { method: 'tools/call', params: { name, arguments: args, ...more } });

async function started(name: string, args: Record<string, unknown> = {}): Promise<string> {
  return (await call(name, args)).body.result.taskId as string;
}

const get = (taskId: string, capabilities: unknown = CAPABLE, as = 'alice') =>
  rpc(rig, { method: 'tasks/get', params: { taskId }, capabilities, as });

/** Waits on the engine's own signals until a task of Alice has a status. */
async function until(taskId: string, status: string): Promise<void> {
  for (let rev = -1; ;) {
    const task = await rig.engine.tasks.waitForChange(callerNamed('alice'), taskId, {
      beyondRev: rev,
      timeoutMs: 10_000,
      signal: AbortSignal.timeout(10_000),
    });
    if (task?.status === status) return;
    if (task === undefined || task.rev === rev) throw new Error(`the task never became ${status}`);
    rev = task.rev;
  }
}

test('a job answers with a handle that can be polled at once, in the fields of the extension', async () => {
  const { body } = await call('work', { ms: 60_000 });
  expect(body.result).toMatchObject({
    resultType: 'task',
    status: 'working',
    statusMessage: 'Work: started.',
    ttlMs: 3_600_000,
    pollIntervalMs: 500,
  });
  expect(body.result.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  for (const field of ['task', 'result', 'error', 'inputRequests', 'requestState', 'ttl', 'pollInterval']) {
    expect(body.result).not.toHaveProperty(field);
  }
  const polled = await get(body.result.taskId as string);
  expect(polled.body.result).toMatchObject({
    resultType: 'complete',
    taskId: body.result.taskId,
    status: 'working',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'rig', version: '1.2.3' } },
  });
});

test('ids are long, random and safe in a header', async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, () => started('work', { ms: 1 })));
  for (const id of ids) expect(id).toMatch(/^task_[A-Za-z0-9_-]{24}$/);
  expect(new Set(ids).size).toBe(5);
});

test('a tool that answers at once is never a task, even when a hint of older clients asks for one', async () => {
  const { body } = await call('greet', { name: 'Bob' }, { task: { ttl: 60_000 } });
  expect(body.result).toMatchObject({
    resultType: 'complete',
    content: [{ type: 'text', text: 'Hello, Bob!' }],
  });
  expect(body.result).not.toHaveProperty('taskId');
});

test('a finished task carries its result, and its polls stay the same', async () => {
  const taskId = await started('work', { label: 'quick' });
  await until(taskId, 'completed');
  const { body } = await get(taskId);
  expect(body.result).toMatchObject({
    status: 'completed',
    result: { content: [{ type: 'text', text: 'quick: done' }], structuredContent: { label: 'quick' } },
  });
  expect(body.result.result._meta).toBeUndefined();
  expect((await get(taskId)).body).toEqual(body);
});

test("a job's own failure is a completed task with isError, and cancelling it changes nothing", async () => {
  const taskId = await started('fails', { how: 'result' });
  await until(taskId, 'completed');
  for (let twice = 0; twice < 2; twice += 1) {
    const cancelled = await rpc(rig, { method: 'tasks/cancel', params: { taskId } });
    expect(cancelled.status).toBe(200);
    expect(cancelled.body.result).toEqual({
      resultType: 'complete',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'rig', version: '1.2.3' } },
    });
  }
  const { result } = (await get(taskId)).body;
  expect(result).toMatchObject({ status: 'completed', result: { isError: true } });
  expect(result).not.toHaveProperty('error');
});

test.each([
  ['protocol', { code: 7002, message: 'Chosen by the job.', data: { reason: 'protocol' } }],
  ['bug', { code: -32603, data: { reason: 'job_failed' } }],
])('a job that ends in an error (%s) is a failed task with that error', async (how, error) => {
  const taskId = await started('fails', { how });
  await until(taskId, 'failed');
  const { result } = (await get(taskId)).body;
  expect(result).toMatchObject({ status: 'failed', error });
  expect(result).not.toHaveProperty('result');
  expect(JSON.stringify(result)).not.toContain('detail');
});

test('a cancelled task is acknowledged with nothing, settles, and stays cancelled', async () => {
  const taskId = await started('work', { ms: 60_000 });
  const cancelled = await rpc(rig, { method: 'tasks/cancel', params: { taskId } });
  expect(Object.keys(cancelled.body.result as object).toSorted()).toEqual(['_meta', 'resultType']);
  expect((await get(taskId)).body.result).toMatchObject({ status: 'cancelled' });
  await rpc(rig, { method: 'tasks/cancel', params: { taskId } });
  expect((await get(taskId)).body.result.status).toBe('cancelled');
});

test('questions of a task are listed until each is answered; answers for unknown keys are ignored', async () => {
  const taskId = await started('both');
  await until(taskId, 'input_required');
  const asked = (await get(taskId)).body.result;
  expect(Object.keys(asked.inputRequests as object).toSorted()).toEqual(['first', 'second']);
  expect(asked.inputRequests.first).toEqual({
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: 'First?',
      requestedSchema: {
        type: 'object',
        properties: { name: { type: 'string', title: 'Name', minLength: 2 } },
        required: ['name'],
      },
    },
  });
  const update = (inputResponses: Record<string, unknown>) =>
    rpc(rig, { method: 'tasks/update', params: { taskId, inputResponses } });
  const accept = (name: string) => ({ action: 'accept', content: { name } });

  const ack = await update({ first: accept('Ann'), unknown: { ignored: true }, second: 7 });
  expect(Object.keys(ack.body.result as object).toSorted()).toEqual(['_meta', 'resultType']);
  const half = (await get(taskId)).body.result;
  expect(half.status).toBe('input_required');
  expect(Object.keys(half.inputRequests as object)).toEqual(['second']);

  // Answered keys are ignored the second time.
  await update({ first: accept('Zoe'), second: accept('Bea') });
  await until(taskId, 'completed');
  expect((await get(taskId)).body.result.result.content[0].text).toBe('Ann and Bea');
});

test('an answer that does not fit is acknowledged, the question stays open, and the message says why', async () => {
  const taskId = await started('both');
  await until(taskId, 'input_required');
  const ack = await rpc(rig, {
    method: 'tasks/update',
    params: { taskId, inputResponses: { first: { action: 'accept', content: { name: 'x' } } } },
  });
  expect(ack.body.result.resultType).toBe('complete');
  const { result } = (await get(taskId)).body;
  expect(Object.keys(result.inputRequests as object).toSorted()).toEqual(['first', 'second']);
  expect(result.statusMessage).toContain('content.name: must have at least 2 characters');
});

test('a declined question fails the task with a stable code, a dismissed one cancels it', async () => {
  const answered = async (action: string) => {
    const taskId = await started('confirm', { file: 'a.txt' });
    await until(taskId, 'input_required');
    await rpc(rig, { method: 'tasks/update', params: { taskId, inputResponses: { sure: { action } } } });
    return (await get(taskId)).body.result;
  };
  expect(await answered('decline')).toMatchObject({
    status: 'failed',
    error: { code: 4010, data: { reason: 'authorization_declined' } },
  });
  expect(await answered('cancel')).toMatchObject({ status: 'cancelled' });
  // An action that the specification does not know changes nothing.
  expect(await answered('maybe')).toMatchObject({ status: 'input_required' });
});

test('each poll lists only what that poll can show; the rest of the time the map is empty, never missing', async () => {
  const taskId = await started('confirm', { file: 'b.txt' });
  await until(taskId, 'input_required');
  const ext = { extensions: { [TASKS]: {} } };
  const shown: [unknown, string[]][] = [
    [ext, []],
    [{ ...ext, elicitation: {} }, ['sure']],
    [{ ...ext, elicitation: { form: {} } }, ['sure']],
    [{ ...ext, elicitation: { url: {} } }, []],
    [{ ...ext, elicitation: { form: {}, url: {} } }, ['sure']],
    [{ ...ext, elicitation: 'form' }, []],
    [{ ...ext, elicitation: null }, []],
    [{ ...ext, elicitation: { form: {} } }, ['sure']],
  ];
  for (const [capabilities, keys] of shown) {
    const { result } = (await get(taskId, capabilities)).body;
    expect(result.status).toBe('input_required');
    expect(Object.keys(result.inputRequests as object)).toEqual(keys);
    const told = String(result.statusMessage).includes('continue in one that does');
    expect(told).toBe(keys.length === 0);
  }
});

test('a client that can show no forms gets an ended task instead of an endless wait', async () => {
  const { body } = await rpc(rig, {
    method: 'tools/call',
    params: { name: 'confirm', arguments: { file: 'c.txt' } },
    capabilities: { extensions: { [TASKS]: {} }, elicitation: { url: {} } },
  });
  await until(body.result.taskId as string, 'failed');
  expect((await get(body.result.taskId as string)).body.result).toMatchObject({
    error: {
      code: 4012,
      data: { reason: 'elicitation_unsupported', requiredCapabilities: { elicitation: { form: {} } } },
    },
  });
});

test('a call that nobody watches ends at once when it needs a person; another value is refused by name', async () => {
  const ask = (interaction: string) =>
    rpc(rig, {
      method: 'tools/call',
      params: { name: 'confirm', arguments: { file: 'c.txt' } },
      capabilities: CAPABLE,
      meta: { 'keyturn/interaction': interaction },
    });
  const { body } = await ask('never');
  await until(body.result.taskId as string, 'failed');
  expect((await get(body.result.taskId as string)).body.result).toMatchObject({
    error: { code: 4017, data: { reason: 'interaction_forbidden', needs: ['sure'] } },
  });
  expect((await ask('sometimes')).body.error).toMatchObject({
    code: -32602,
    message: expect.stringContaining('_meta["keyturn/interaction"]'),
  });
});

test('the trace of a call goes with its task; a malformed one does not', async () => {
  const trace = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01';
  for (const [traceparent, kept] of [
    [trace, trace],
    ['00-zz', null],
    [7, null],
  ] as const) {
    const { body } = await rpc(rig, {
      method: 'tools/call',
      params: { name: 'work', arguments: {} },
      meta: { traceparent },
    });
    const view = await rig.ledger.readTask(body.result.taskId as string);
    expect(view?.task.trace).toBe(kept);
  }
});

test('a secret in use never leaves, in a result neither in a message', async () => {
  rig.secrets.add(secret('s3cr3t-access-token-value'));
  const direct = await call('greet', { name: 's3cr3t-access-token-value' });
  expect(direct.body.result.content[0].text).toBe('Hello, [secret]!');
  const taskId = await started('work', { label: 's3cr3t-access-token-value' });
  await until(taskId, 'completed');
  expect(JSON.stringify((await get(taskId)).body)).not.toContain('s3cr3t');
});

test('a caller with too many open tasks is told when to try again', async () => {
  const small = await openRig({ tools: TOOLS, tasks: { openPerOwner: 1 } });
  try {
    const start = () =>
      rpc(small, { method: 'tools/call', params: { name: 'work', arguments: { ms: 60_000 } } });
    expect((await start()).body.result.resultType).toBe('task');
    expect((await start()).body.error).toMatchObject({
      code: 4290,
      data: { reason: 'too_many_tasks', limit: 'owner', retryAfterMs: 30_000 },
    });
  } finally {
    await small.close();
  }
});
