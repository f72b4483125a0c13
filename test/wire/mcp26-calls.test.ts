import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stateSeal } from '../../src/mcp/rev-2026-07-28/request-state.ts';
import { argumentsDigest } from '../../src/task/idempotency.ts';
import { callerNamed, CAPABLE, openRig, rpc, TASKS, type Rig, type RpcAnswer } from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

let rig: Rig;
const HOLD_MS = 400;

beforeAll(async () => {
  rig = await openRig({ tools: TOOLS, mcp: { holdMs: HOLD_MS } });
});

afterAll(() => rig.close());

/** A client without the tasks extension that can show both kinds of questions. */
const PLAIN = { elicitation: { form: {}, url: {} } };

interface More {
  readonly as?: string;
  readonly capabilities?: unknown;
  readonly meta?: Record<string, unknown>;
  readonly headers?: Record<string, string | undefined>;
  readonly params?: Record<string, unknown>;
}

function call(name: string, args: Record<string, unknown> = {}, more: More = {}): Promise<RpcAnswer> {
  return rpc(rig, {
    method: 'tools/call',
    params: { name, arguments: args, ...more.params },
    capabilities: more.capabilities ?? PLAIN,
    ...(more.as === undefined ? {} : { as: more.as }),
    ...(more.meta === undefined ? {} : { meta: more.meta }),
    ...(more.headers === undefined ? {} : { headers: more.headers }),
  });
}

const openTasks = async (as: string) => rig.engine.tasks.list(callerNamed(as), { after: null, limit: 100 });

describe('what a call is held against', () => {
  test('an unknown tool is −32602 in band', async () => {
    const answer = await call('nobody');
    expect(answer.status).toBe(200);
    expect(answer.body.error).toMatchObject({ code: -32602, data: { reason: 'tool_unknown' } });
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['work', { ms: 'long' }, 'arguments.ms: '],
    ['work', { ms: -1 }, 'arguments.ms: '],
    ['confirm', {}, 'arguments.file: '],
    ['interview', { odd: 1 }, 'arguments.odd: is not an argument of this tool'],
  ])('arguments of %s that do not fit are a tool result that names the path', async (name, args, path) => {
    const answer = await call(name, args, { capabilities: CAPABLE });
    expect(answer.status).toBe(200);
    expect(answer.body.result).toMatchObject({ resultType: 'complete', isError: true });
    expect(answer.body.result.content[0].text).toContain(path);
  });

  test('arguments that are no object are no request of this method', async () => {
    const answer = await rpc(rig, { method: 'tools/call', params: { name: 'greet', arguments: [1] } });
    expect(answer.body.error?.code).toBe(-32602);
  });

  test('no arguments at all are as good as an empty object', async () => {
    const answer = await rpc(rig, { method: 'tools/call', params: { name: 'greet' } });
    expect(answer.body.result.content[0].text).toBe('Hello, you!');
  });

  test.each<[string, Record<string, unknown>, Record<string, string>]>([
    ['a header that is missing', { region: 'eu' }, {}],
    ['another value', { region: 'eu' }, { 'mcp-param-region': 'us' }],
    ['bad Base64', { region: 'eu' }, { 'mcp-param-region': '=?base64?ZX!?=' }],
    ['bad padding', { region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }],
    ['another number', { region: 'eu', shard: 7 }, { 'mcp-param-region': 'eu', 'mcp-param-shard': '8' }],
    ['a header without its argument', { region: 'eu' }, { 'mcp-param-region': 'eu', 'mcp-param-shard': '8' }],
  ])('mirrored arguments: %s is 400 and −32020', async (_what, args, headers) => {
    const answer = await call('route', args, { headers });
    expect(answer.status).toBe(400);
    expect(answer.body.error?.code).toBe(-32020);
  });

  test.each<[Record<string, unknown>, Record<string, string>, string]>([
    [{ region: 'us-west1' }, { 'mcp-param-region': 'us-west1' }, 'us-west1/-'],
    [{ region: 'Hello, 世界' }, { 'Mcp-Param-Region': '=?base64?SGVsbG8sIOS4lueVjA==?=' }, 'Hello, 世界/-'],
    [{ region: 'eu', shard: 42 }, { 'mcp-param-region': ' eu ', 'mcp-param-shard': '42.0' }, 'eu/42'],
    [{ region: '=?base64?x' }, { 'mcp-param-region': '=?base64?x' }, '=?base64?x/-'],
  ])('mirrored arguments %j agree with %j', async (args, headers, said) => {
    const answer = await call('route', args, { headers });
    expect(answer.body.result?.content?.[0]?.text).toBe(said);
  });

  test('a job that only runs as a task is refused with what is missing', async () => {
    const answer = await call('only_tasks');
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
    });
    expect((await call('only_tasks', {}, { capabilities: CAPABLE })).body.result.resultType).toBe('task');
  });

  test("a tool's own JSON-RPC error leaves as it is", async () => {
    const answer = await call('breaks', { how: 'protocol' });
    expect(answer.body.error).toEqual({ code: 7001, message: 'Chosen by the tool.' });
  });
});

describe('a client without tasks', () => {
  test('gets the result of a short job within its call, and never a handle', async () => {
    const { body } = await call('work', { label: 'short' }, { capabilities: {} });
    expect(body.result).toMatchObject({ resultType: 'complete', content: [{ text: 'short: done' }] });
    expect(body.result).not.toHaveProperty('taskId');
  });

  test('is led by request state through a long job, which runs once', async () => {
    const as = 'led';
    let answer = await call('work', { ms: 1_500, label: 'long' }, { as, capabilities: {} });
    let legs = 1;
    for (; answer.body.result?.resultType === 'input_required' && legs < 20; legs += 1) {
      expect(answer.body.result).not.toHaveProperty('inputRequests');
      expect(answer.body.result).not.toHaveProperty('taskId');
      answer = await call(
        'work',
        { ms: 1_500, label: 'long' },
        { as, capabilities: {}, params: { requestState: answer.body.result.requestState } },
      );
    }
    expect(answer.body.result).toMatchObject({ resultType: 'complete', content: [{ text: 'long: done' }] });
    expect(legs).toBeGreaterThan(2);
    expect(await openTasks(as)).toHaveLength(1);
  });

  test('finds the same work again when it calls anew, until the result has been delivered', async () => {
    const as = 'again';
    const first = await call('work', { ms: 1_200, label: 'same' }, { as });
    expect(first.body.result.resultType).toBe('input_required');
    // It gave up, and calls again without any state.
    let answer = await call('work', { label: 'same', ms: 1_200 }, { as });
    for (let legs = 0; answer.body.result.resultType === 'input_required' && legs < 10; legs += 1) {
      answer = await call('work', { ms: 1_200, label: 'same' }, { as });
    }
    expect(answer.body.result.content[0].text).toBe('same: done');
    expect(await openTasks(as)).toHaveLength(1);
    await expect
      .poll(async () => (await call('work', { ms: 1_200, label: 'same' }, { as })).body.result.resultType)
      .toBe('input_required');
    expect(await openTasks(as)).toHaveLength(2);
  });

  test('shares nothing with another person, or with another client of the same one', async () => {
    const args = { ms: 900, label: 'own' };
    const states = await Promise.all(
      ['carol', 'dave', 'carol@other'].map((as) => call('work', args, { as })),
    );
    const stored = await Promise.all(['carol', 'dave', 'carol@other'].map(openTasks));
    expect(stored.map((tasks) => tasks.length)).toEqual([1, 1, 1]);
    // And a state opens for nobody else.
    const requestState = states[0]?.body.result.requestState as string;
    for (const as of ['dave', 'carol@other']) {
      const stolen = await call('work', args, { as, params: { requestState } });
      expect(stolen.body.error).toMatchObject({ code: -32602, data: { reason: 'request_state_invalid' } });
    }
  });

  test('is asked by a form, answers it, and gets the result', async () => {
    const asked = await call('confirm', { file: 'x' }, { as: 'erin' });
    expect(asked.body.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: {
        sure: { method: 'elicitation/create', params: { mode: 'form', message: 'Delete x?' } },
      },
    });
    const answer = (content: unknown) =>
      call(
        'confirm',
        { file: 'x' },
        {
          as: 'erin',
          params: {
            requestState: asked.body.result.requestState,
            inputResponses: { sure: { action: 'accept', content } },
          },
        },
      );
    // What does not fit is asked again.
    const again = await answer({ sure: 'very' });
    expect(again.body.result).toMatchObject({ resultType: 'input_required', inputRequests: { sure: {} } });
    expect(again.body.result.inputRequests.sure.params.message).toBe(
      'Delete x? (content.sure: must be true or false)',
    );
    const done = await answer({ sure: true });
    expect(done.body.result).toMatchObject({ resultType: 'complete', content: [{ text: 'Deleted x' }] });
  });

  test('that declines gets the stable error of the ended task', async () => {
    const asked = await call('confirm', { file: 'y' }, { as: 'erin' });
    const { body } = await call(
      'confirm',
      { file: 'y' },
      {
        as: 'erin',
        params: {
          requestState: asked.body.result.requestState,
          inputResponses: { sure: { action: 'decline' } },
        },
      },
    );
    expect(body.error).toMatchObject({ code: 4010, data: { reason: 'authorization_declined' } });
  });

  test('that can show nothing is refused with what is missing, as HTTP 400', async () => {
    const answer = await call('confirm', { file: 'z' }, { as: 'mute', capabilities: {} });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
  });

  test('that begins to declare tasks is given the handle of its work', async () => {
    const asked = await call('confirm', { file: 'h' }, { as: 'grow' });
    const { body } = await call(
      'confirm',
      { file: 'h' },
      { as: 'grow', capabilities: CAPABLE, params: { requestState: asked.body.result.requestState } },
    );
    expect(body.result).toMatchObject({ resultType: 'task', status: 'input_required' });
    expect(body.result).not.toHaveProperty('requestState');
  });
});

describe('questions before the work', () => {
  const accept = (content: Record<string, unknown>) => ({ action: 'accept', content });

  test('are asked one leg after the other; earlier answers travel sealed', async () => {
    const first = await call('interview');
    expect(Object.keys(first.body.result.inputRequests as object)).toEqual(['who']);
    const second = await call(
      'interview',
      {},
      {
        params: {
          requestState: first.body.result.requestState,
          inputResponses: { who: accept({ name: 'Ann' }) },
        },
      },
    );
    expect(Object.keys(second.body.result.inputRequests as object)).toEqual(['colour']);
    expect(second.body.result.requestState).not.toBe(first.body.result.requestState);
    expect(Buffer.from(String(second.body.result.requestState), 'base64url').toString()).not.toContain('Ann');
    const third = await call(
      'interview',
      {},
      {
        params: {
          requestState: second.body.result.requestState,
          inputResponses: { colour: accept({ colour: 'blue' }) },
        },
      },
    );
    expect(third.body.result).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'Ann likes blue' }],
    });
  });

  test('may all be answered at once, with surplus answers, even without the state', async () => {
    const { body } = await call(
      'interview',
      {},
      {
        params: {
          inputResponses: {
            who: accept({ name: 'Ann' }),
            colour: accept({ colour: 'red' }),
            odd: accept({ x: 1 }),
            odder: 7,
          },
        },
      },
    );
    expect(body.result.content[0].text).toBe('Ann likes red');
  });

  test.each([
    ['under another key', { wrong: accept({ name: 'Ann' }) }],
    ['of an odd shape', { who: 12_345 }],
    ['that does not fit', { who: accept({ name: 'x' }) }],
    ['with an unknown action', { who: { action: 'perhaps' } }],
  ])('are asked again after an answer %s', async (_what, inputResponses) => {
    const { body } = await call('interview', {}, { params: { inputResponses } });
    expect(body.result).toMatchObject({ resultType: 'input_required', inputRequests: { who: {} } });
  });

  test('whose answers do not fit into a request state are refused with a reason, not lost', async () => {
    const { body } = await call(
      'interview',
      {},
      { params: { inputResponses: { who: accept({ name: '\u{1F511}'.repeat(9_000) }) } } },
    );
    expect(body.error).toMatchObject({ code: -32602, data: { reason: 'value_too_large', limit: 16_384 } });
  });

  test('that are declined end the call without running the tool', async () => {
    const { body } = await call(
      'interview',
      {},
      { params: { inputResponses: { who: { action: 'decline' } } } },
    );
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true });
    expect(body.result.content[0].text).toContain('"who"');
  });

  test('are refused to a client that shows no forms', async () => {
    const answer = await call('interview', {}, { capabilities: { elicitation: { url: {} } } });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
  });

  test('come before the task of a job; its handle carries no state', async () => {
    const asked = await call('prepared', {}, { capabilities: CAPABLE });
    expect(asked.body.result).toMatchObject({ resultType: 'input_required', inputRequests: { who: {} } });
    expect(asked.body.result).not.toHaveProperty('taskId');
    const { body } = await call(
      'prepared',
      {},
      {
        capabilities: CAPABLE,
        params: {
          requestState: asked.body.result.requestState,
          inputResponses: { who: accept({ name: 'Alice' }) },
        },
      },
    );
    expect(body.result.resultType).toBe('task');
    expect(body.result).not.toHaveProperty('requestState');
    const { taskId } = body.result as { taskId: string };
    await expect
      .poll(async () => (await rpc(rig, { method: 'tasks/get', params: { taskId } })).body.result)
      .toMatchObject({ status: 'completed', result: { content: [{ text: 'Prepared for Alice' }] } });
  });
});

describe('request state', () => {
  test.each([
    ['that was altered', (state: string) => `${state}-TAMPERED`],
    ['that was cut', (state: string) => state.slice(0, -8)],
    ['that is empty', () => ''],
    ['that is something else', () => 'eyJhbGciOiJub25lIn0.e30.'],
  ])('%s is refused', async (_what, alter) => {
    const asked = await call('interview');
    const answer = await call(
      'interview',
      {},
      { params: { requestState: alter(String(asked.body.result.requestState)) } },
    );
    expect(answer.status).toBe(200);
    expect(answer.body.error).toMatchObject({ code: -32602, data: { reason: 'request_state_invalid' } });
  });

  test('that is not a text is refused', async () => {
    const { body } = await call('interview', {}, { params: { requestState: 5 } });
    expect(body.error?.code).toBe(-32602);
  });

  test('opens for no other arguments, no other tool and not after its time', async () => {
    const asked = await call('confirm', { file: 'one' });
    const { requestState } = asked.body.result as { requestState: string };
    for (const [name, args] of [
      ['confirm', { file: 'two' }],
      ['work', { file: 'one' }],
    ] as const) {
      const { body } = await call(name, args, { params: { requestState } });
      expect(body.error).toMatchObject({ code: -32602, data: { reason: 'request_state_invalid' } });
    }
    const { owner, clientId } = callerNamed('alice');
    const over = await stateSeal(rig.keyring).seal(
      { answers: {}, state: null },
      {
        expiresAtMs: Date.now() - 1,
        context: ['tools/call', owner, clientId, 'interview', argumentsDigest({})],
      },
    );
    const late = await call('interview', {}, { params: { requestState: over } });
    expect(late.body.error).toMatchObject({ code: -32602, data: { reason: 'request_state_invalid' } });
  });

  test('of a task that another owner holds does not lead there', async () => {
    const asked = await call('confirm', { file: 'mine' }, { as: 'owner-one' });
    const known = await openTasks('owner-one');
    const { owner, clientId } = callerNamed('owner-two');
    // Even a state that the server itself had sealed for somebody else's task opens nothing.
    const forged = await stateSeal(rig.keyring).seal(
      { task: known[0]?.taskId ?? '' },
      {
        expiresAtMs: Date.now() + 60_000,
        context: ['tools/call', owner, clientId, 'confirm', argumentsDigest({ file: 'mine' })],
      },
    );
    const { body } = await call(
      'confirm',
      { file: 'mine' },
      { as: 'owner-two', params: { requestState: forged } },
    );
    expect(asked.body.result.resultType).toBe('input_required');
    expect(body.error).toMatchObject({ data: { reason: 'request_state_invalid' } });
  });
});

describe('the same call twice', () => {
  const keyed = (args: Record<string, unknown>, key: unknown, more: More = {}) =>
    call('work', args, { capabilities: CAPABLE, meta: { 'keyturn/idempotencyKey': key }, ...more });

  test('with a key of the client is one task, with other arguments a refusal', async () => {
    const first = await keyed({ label: 'k' }, 'key-1');
    const second = await keyed({ label: 'k' }, 'key-1');
    expect(second.body.result.taskId).toBe(first.body.result.taskId);
    const inHeader = await call(
      'work',
      { label: 'k' },
      { capabilities: CAPABLE, headers: { 'idempotency-key': 'key-1' } },
    );
    expect(inHeader.body.result.taskId).toBe(first.body.result.taskId);
    const other = await keyed({ label: 'other' }, 'key-1');
    expect(other.body.error).toMatchObject({ code: -32602, data: { reason: 'idempotency_conflict' } });
  });

  test('with the same key of another person or client is another task', async () => {
    const ids = await Promise.all(
      ['alice', 'bob', 'alice@other'].map(
        async (as) => (await keyed({ label: 'mine' }, 'key-2', { as })).body.result.taskId as string,
      ),
    );
    expect(new Set(ids).size).toBe(3);
  });

  test('without a key, from clients with handles, is two tasks', async () => {
    const [one, two] = await Promise.all([
      call('work', {}, { capabilities: CAPABLE }),
      call('work', {}, { capabilities: CAPABLE }),
    ]);
    expect(one.body.result.taskId).not.toBe(two.body.result.taskId);
  });

  test.each([[7], [''], ['x'.repeat(257)], [null]])('a key like %j is refused', async (key) => {
    const { body } = await keyed({}, key);
    expect(body.error).toMatchObject({ code: -32602 });
    expect(body.error?.message).toContain('keyturn/idempotencyKey');
  });

  test('two keys that differ are refused', async () => {
    const { body } = await keyed({}, 'one', { headers: { 'idempotency-key': 'two' } });
    expect(body.error).toMatchObject({ code: -32602 });
  });
});
