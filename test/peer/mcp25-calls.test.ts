/** Calls of MCP 2025-11-25 without a task: the same durable task, found again by the call itself. */
import {
  CallToolResultSchema,
  McpError,
  UrlElicitationRequiredError,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js';
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

async function another(options: Parameters<typeof startLegacyServer>[1]): Promise<void> {
  await server.close();
  server = await startLegacyServer(place, options);
}

const call = (one: Peer, args: Record<string, unknown> = { source: 'a' }, name = 'ingest') =>
  one.client.callTool({ name, arguments: args }, CallToolResultSchema) as Promise<CallToolResult>;

async function errorOf(promise: Promise<unknown>): Promise<McpError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof McpError)) throw new Error('no protocol error', { cause: error });
  return error;
}

function textOf(result: CallToolResult): string {
  return result.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
}

test('a job that ends in time answers its call', async () => {
  const alice = await peer('alice-token');
  const answer = call(alice);
  await server.finish(await server.claim(), { content: [{ type: 'text', text: 'read 3' }] });
  expect(await answer).toMatchObject({ content: [{ text: 'read 3' }] });
});

test('a call says by itself that nobody watches it; another value is refused by name', async () => {
  const alice = await peer('alice-token');
  const unwatched = (interaction: string) =>
    alice.client.callTool(
      { name: 'ingest', arguments: { source: interaction }, _meta: { 'keyturn/interaction': interaction } },
      CallToolResultSchema,
    );
  const answer = unwatched('never');
  const running = await server.claim();
  expect(running.interaction).toBe('never');
  await server.finish(running, { content: [{ type: 'text', text: 'x' }] });
  await answer;
  const error = await errorOf(unwatched('sometimes'));
  expect(error.code).toBe(-32602);
  expect(error.message).toContain('_meta["keyturn/interaction"]');
});

describe('a call that needs a sign-in', () => {
  async function refusedCall(alice: Peer) {
    const answer = errorOf(call(alice));
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const error = await answer;
    if (!(error instanceof UrlElicitationRequiredError)) throw error;
    return { running, error };
  }

  test('is answered with -32042 and the link; repeated after the sign-in it joins the same task', async () => {
    const alice = await peer('alice-token');
    const { running, error } = await refusedCall(alice);
    expect(error.code).toBe(-32042);
    expect(error.elicitations).toHaveLength(1);
    const [link] = error.elicitations;
    expect(link).toEqual({
      mode: 'url',
      message: 'Sign in at acme.',
      url: `https://keyturn.example/connect/${link?.elicitationId}`,
      elicitationId: link?.elicitationId,
    });
    await server.signIn(link?.elicitationId ?? '');
    await alice.until(() => alice.completed.length === 1);
    expect(alice.completed).toEqual([link?.elicitationId]);

    const again = call(alice);
    const resumed = await server.claim();
    expect(resumed.id).toBe(running.id);
    await server.finish(resumed, { content: [{ type: 'text', text: 'read 3' }] });
    expect(await again).toMatchObject({ content: [{ text: 'read 3' }] });
  });

  test('gets the finished result when the work was done before the call came back', async () => {
    const alice = await peer('alice-token');
    const { error } = await refusedCall(alice);
    await server.signIn(error.elicitations[0]?.elicitationId ?? '');
    await server.finish(await server.claim(), { content: [{ type: 'text', text: 'read 3' }] });
    expect(await call(alice)).toMatchObject({ content: [{ text: 'read 3' }] });
    // Delivered: the same call is a new one from now on.
    await expect
      .poll(
        async () => {
          const { created } = await server.tasks.start(
            { owner: 'https://issuer.example#alice', clientId: 'app', scopes: [] },
            {
              job: { kind: 'job', name: 'ingest', description: '', run: () => Promise.reject(new Error()) },
              args: { source: 'a' },
              declared: { tasks: false, modes: { form: true, url: true }, clientName: null },
              idempotency: (await import('../../src/task/idempotency.ts')).implicitKey({ source: 'a' }),
            },
          );
          return created;
        },
        { timeout: 5_000 },
      )
      .toBe(true);
  });

  test('is held when it comes back while the person is signing in, and given the same link in the end', async () => {
    await another({ settings: { holdMs: 300, keepAliveMs: 50 } });
    const alice = await peer('alice-token');
    const { error } = await refusedCall(alice);
    const startedAt = performance.now();
    const again = await errorOf(call(alice));
    expect(performance.now() - startedAt).toBeGreaterThan(250);
    expect((again as UrlElicitationRequiredError).elicitations).toEqual(error.elicitations);
  });

  test('gives the link to another session of the same person at once', async () => {
    const alice = await peer('alice-token');
    const { error } = await refusedCall(alice);
    const elsewhere = await peer('alice-renewed');
    const again = await errorOf(call(elsewhere));
    expect((again as UrlElicitationRequiredError).elicitations).toEqual(error.elicitations);
  });

  test('fails with the reason when the person denies, and starts anew when called again', async () => {
    const alice = await peer('alice-token');
    const { running } = await refusedCall(alice);
    await server.ledger.cancelTask(running.owner, running.id, 'test');
    expect(await errorOf(call(alice))).toMatchObject({ code: 4020, data: { reason: 'task_cancelled' } });
    const fresh = call(alice);
    const second = await server.claim();
    expect(second.id).not.toBe(running.id);
    await server.finish(second, { content: [] });
    await fresh;
  });
});

test('a client that shows no URL is never given one: the task ends with code 4012 and its call says so', async () => {
  const alice = await peer('alice-token', { capabilities: { elicitation: {} } });
  const answer = errorOf(call(alice));
  const running = await server.claim();
  expect(running.modes).toEqual({ form: true, url: false });
  await server.finish(running, refusalOutcome('elicitation_unsupported'));
  const error = await answer;
  expect(error).toMatchObject({ code: 4012, data: { reason: 'elicitation_unsupported' } });
  expect(alice.asked).toEqual([]);
});

test.each([
  { declared: 'nothing', capabilities: {} },
  { declared: 'an empty object', capabilities: { elicitation: {} } },
  { declared: 'form only', capabilities: { elicitation: { form: {} } } },
])(
  'a result stream of a client that declares $declared shows no link, and ends with the task',
  async ({ capabilities }) => {
    const capable = await peer('alice-token');
    const stream = capable.client.experimental.tasks.callToolStream(
      { name: 'ingest', arguments: { source: 'a' } },
      undefined,
      { task: {} },
    );
    await stream.next();
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);

    const less = await peer('alice-token', { capabilities });
    const result = less.client.experimental.tasks.getTaskResult(running.id, CallToolResultSchema);
    await less.client.ping();
    expect((await less.client.experimental.tasks.getTask(running.id)).status).toBe('input_required');
    expect(less.asked).toEqual([]);
    const asked = (await server.ledger.readTask(running.id))?.asked[0];
    await server.signIn(asked?.id ?? '');
    await server.finish(await server.claim(), { content: [] });
    expect(await result).toMatchObject({ content: [] });
    expect(less.asked).toEqual([]);
  },
);

test('a form is asked on the stream of the call itself', async () => {
  const alice = await peer('alice-token', {
    answer: () => ({ action: 'accept', content: { user_name: 'Alice' } }),
  });
  const answer = call(alice);
  await server.stop(await server.claim(), [server.formNeed()]);
  await server.finish(await server.claim(), { content: [{ type: 'text', text: 'done' }] });
  expect(await answer).toMatchObject({ content: [{ text: 'done' }] });
  expect(alice.asked).toMatchObject([{ mode: 'form', message: 'Your name?' }]);
});

test('a call that takes too long is told to come back, and then joins the same task', async () => {
  await another({ settings: { holdMs: 200, keepAliveMs: 50 } });
  const alice = await peer('alice-token');
  const told: number[] = [];
  const first = (await alice.client.callTool({ name: 'ingest', arguments: { source: 'a' } }, undefined, {
    onprogress: ({ progress }) => told.push(progress),
  })) as CallToolResult;
  expect(textOf(first)).toContain('Call ingest again with the same arguments');
  expect(first.isError).not.toBe(true);
  expect(told.length).toBeGreaterThan(1);
  expect(told).toEqual([...new Set(told)].toSorted((a, b) => a - b));
  const running = await server.claim();
  const again = call(alice);
  await server.finish(running, { content: [{ type: 'text', text: 'read 3' }] });
  expect(await again).toMatchObject({ content: [{ text: 'read 3' }] });
});

describe('the same call sent twice', () => {
  test('runs once when the first connection is cut before its answer', async () => {
    const cut = new AbortController();
    const lost = await peer('alice-token', {
      fetch: (input, init) =>
        fetch(input, {
          ...init,
          signal: AbortSignal.any([cut.signal, ...(init?.signal ? [init.signal] : [])]),
        }),
    });
    const first = call(lost).catch(() => undefined);
    const running = await server.claim();
    cut.abort();
    await lost.close();
    await first;
    await server.finish(running, { content: [{ type: 'text', text: 'read 3' }] });
    const again = await peer('alice-renewed');
    expect(await call(again)).toMatchObject({ content: [{ text: 'read 3' }] });
    expect(await server.ledger.countTasks()).toMatchObject({ due: 0 });
  });

  test('at the same time is one task and one link', async () => {
    const alice = await peer('alice-token');
    const elsewhere = await peer('alice-renewed');
    const answers = [errorOf(call(alice)), errorOf(call(alice)), errorOf(call(elsewhere))];
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    // The first answer of a session carries the link at once; what else it calls waits for the sign-in.
    const first = (await Promise.race(answers)) as UrlElicitationRequiredError;
    await server.signIn(first.elicitations[0]?.elicitationId ?? '');
    const resumed = await server.claim();
    expect(resumed.id).toBe(running.id);
    await server.finish(resumed, { content: [] });
    const { tasks } = await alice.client.experimental.tasks.listTasks();
    expect(tasks.map((task) => task.taskId)).toEqual([running.id]);
    await Promise.allSettled(answers);
  });

  test('is two tasks for two people, two clients, or other arguments', async () => {
    const alice = await peer('alice-token');
    const bob = await peer('bob-token');
    const other = await peer('alice-other-app');
    const answers = [call(alice), call(bob), call(other), call(alice, { source: 'b' })];
    const ids = new Set<string>();
    for (let many = 0; many < 4; many += 1) {
      const running = await server.claim();
      ids.add(running.id);
      await server.finish(running, { content: [] });
    }
    await Promise.all(answers);
    expect(ids.size).toBe(4);
  });

  test('with one key and a task gives the same handle; the same key for other arguments is refused', async () => {
    const alice = await peer('alice-token');
    const create = async (source: string) => {
      const stream = alice.client.experimental.tasks.callToolStream(
        { name: 'ingest', arguments: { source }, _meta: { 'keyturn/idempotencyKey': 'k1' } },
        undefined,
        { task: {} },
      );
      const first = await stream.next();
      if (first.done === true) throw new Error('nothing came');
      return first.value;
    };
    const one = await create('a');
    const two = await create('a');
    if (one.type !== 'taskCreated' || two.type !== 'taskCreated') throw new Error('no task');
    expect(two.task.taskId).toBe(one.task.taskId);
    const refused = await create('b');
    expect(refused).toMatchObject({
      type: 'error',
      error: { code: -32602, data: { reason: 'idempotency_conflict' } },
    });
  });
});

describe('where the operator allows links as text', () => {
  const capabilities = { elicitation: {} };

  test('the call answers with the link, and companion tools lead to the result', async () => {
    await another({ delivery: { textLink: ['plain-host'] }, settings: { holdMs: 5_000 } });
    const alice = await peer('alice-token', { capabilities, name: 'plain-host' });
    const { tools } = await alice.client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual(
      expect.arrayContaining(['task_status', 'task_result', 'task_cancel']),
    );
    const answer = call(alice);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const words = textOf(await answer);
    const asked = (await server.ledger.readTask(running.id))?.asked[0];
    expect(words).toContain(`https://keyturn.example/connect/${asked?.id}`);
    expect(words).toContain(running.id);
    expect(textOf(await call(alice, { taskId: running.id }, 'task_status'))).toContain(
      `https://keyturn.example/connect/${asked?.id}`,
    );
    await server.signIn(asked?.id ?? '');
    const result = call(alice, { taskId: running.id }, 'task_result');
    await server.finish(await server.claim(), { content: [{ type: 'text', text: 'read 3' }] });
    expect(await result).toMatchObject({ content: [{ text: 'read 3' }] });
    expect(alice.asked).toEqual([]);
  });

  test('a client of another name is given none', async () => {
    await another({ delivery: { textLink: ['plain-host'] }, settings: { holdMs: 300 } });
    const alice = await peer('alice-token', { capabilities, name: 'other-host' });
    const answer = call(alice);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    expect(textOf(await answer)).not.toContain('https://');
    expect(textOf(await call(alice, { taskId: running.id }, 'task_status'))).not.toContain('https://');
  });

  test('companion tools obey ownership and cancel', async () => {
    await another({ companions: 'always' });
    const alice = await peer('alice-token', { capabilities });
    const bob = await peer('bob-token', { capabilities });
    void call(alice).catch(() => undefined);
    const running = await server.claim();
    for (const name of ['task_status', 'task_result', 'task_cancel']) {
      expect(await errorOf(call(bob, { taskId: running.id }, name))).toMatchObject({
        code: -32602,
        data: { reason: 'task_unknown' },
      });
    }
    expect(textOf(await call(alice, { taskId: running.id }, 'task_cancel'))).toBe('Cancelled.');
    expect(await call(alice, { taskId: running.id }, 'task_cancel')).toMatchObject({ isError: true });
    expect((await server.ledger.readTask(running.id))?.task.status).toBe('cancelled');
  });

  test('clients that know tasks or URLs are shown no companion tools, and cannot call them', async () => {
    const alice = await peer('alice-token');
    const { tools } = await alice.client.listTools();
    expect(tools.map((tool) => tool.name)).not.toContain('task_status');
    expect(await errorOf(call(alice, { taskId: 'x' }, 'task_status'))).toMatchObject({ code: -32602 });
  });
});

describe('tools that answer at once', () => {
  test('answer, take defaults, and say which argument is wrong', async () => {
    const alice = await peer('alice-token');
    expect(textOf(await call(alice, {}, 'greet'))).toBe('Hello, you.');
    const wrong = await call(alice, { name: 7 }, 'greet');
    expect(wrong.isError).toBe(true);
    expect(textOf(wrong)).toContain('arguments.name');
    expect(await errorOf(call(alice, {}, 'no_such_tool'))).toMatchObject({ code: -32602 });
  });

  test('show nothing of their own failures, and pass on the errors that they choose', async () => {
    const alice = await peer('alice-token');
    const broken = await call(alice, {}, 'broken');
    expect(broken.isError).toBe(true);
    expect(JSON.stringify(broken)).not.toContain('secret detail');
    expect(await errorOf(call(alice, {}, 'protocol_error'))).toMatchObject({ code: -32011 });
  });

  test('ask first by form, once more when the content does not fit, and do nothing after a decline', async () => {
    const answers = [
      { action: 'accept' as const, content: { user_name: '' } },
      { action: 'accept' as const, content: { user_name: 'Alice' } },
      { action: 'decline' as const },
    ];
    const alice = await peer('alice-token', { answer: () => answers.shift() ?? { action: 'cancel' } });
    expect(textOf(await call(alice, {}, 'greet_by_name'))).toBe('Hello, Alice.');
    expect(alice.asked).toHaveLength(2);
    expect(await call(alice, {}, 'greet_by_name')).toMatchObject({ isError: true });
    const none = await peer('alice-token', { capabilities: {} });
    expect(await errorOf(call(none, {}, 'greet_by_name'))).toMatchObject({ code: 4012 });
  });
});
