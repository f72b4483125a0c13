/** Sessions of the revisions with a handshake, as requests and responses. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makePlace, startLegacyServer, type LegacyServer } from '../support/legacy-server.ts';

let place: Awaited<ReturnType<typeof makePlace>>;
let server: LegacyServer;

beforeEach(async () => {
  place = await makePlace();
  server = await startLegacyServer(place);
});

afterEach(async () => {
  await server.close();
  await place.remove();
});

interface Sent {
  token?: string;
  session?: string | undefined;
  version?: string;
  method?: string;
  headers?: Record<string, string>;
}

function send(
  body: unknown,
  { token = 'alice-token', session, version, method = 'POST', headers = {} }: Sent = {},
) {
  return fetch(server.url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
      ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
      ...headers,
    },
    ...(method === 'POST' ? { body: JSON.stringify(body) } : {}),
  });
}

interface Rpc {
  id?: unknown;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
}

/** Messages of an event stream, as they come. */
async function* messages(response: Response): AsyncGenerator<Rpc> {
  let text = '';
  if (response.body === null) return;
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      const line = event.split('\n').find((one) => one.startsWith('data: '));
      if (line !== undefined) yield JSON.parse(line.slice(6)) as Rpc;
    }
  }
}

async function last(response: Response): Promise<Rpc> {
  let message: Rpc | undefined;
  for await (const one of messages(response)) message = one;
  if (message === undefined) throw new Error(`no message, HTTP ${response.status}`);
  return message;
}

const initialize = (
  protocolVersion = '2025-11-25',
  capabilities: unknown = { elicitation: { url: {}, form: {} } },
) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities, clientInfo: { name: 'raw', version: '1' } },
});

async function open(token = 'alice-token', ...said: Parameters<typeof initialize>) {
  const response = await send(initialize(...said), { token });
  const answer = await last(response);
  const session = response.headers.get('mcp-session-id') ?? undefined;
  if (session === undefined) throw new Error('no session');
  return { session, answer };
}

const request = (id: number, method: string, params: unknown = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

async function createTask(session: string, token = 'alice-token'): Promise<string> {
  const params = { name: 'ingest', arguments: { source: 'a' }, task: {} };
  const answer = await last(await send(request(1, 'tools/call', params), { session, token }));
  return (answer.result as { task: { taskId: string } }).task.taskId;
}

describe('a session', () => {
  test.each(['2025-11-25', '2025-06-18', '2025-03-26'])('speaks %s when it is asked for', async (version) => {
    const { answer } = await open('alice-token', version);
    expect(answer.result).toMatchObject({ protocolVersion: version, serverInfo: { name: 'keyturn' } });
  });

  test.each(['2024-11-05', '2031-01-01', 'nonsense'])(
    'offers the latest revision for %s',
    async (version) => {
      const { answer } = await open('alice-token', version);
      expect(answer.result).toMatchObject({ protocolVersion: '2025-11-25' });
    },
  );

  test('has tasks only where its revision has them', async () => {
    const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
    const { answer } = await open();
    expect(answer.result?.['capabilities']).toEqual({ tools: {}, tasks });
    const older = await open('alice-token', '2025-06-18');
    expect(older.answer.result?.['capabilities']).toEqual({ tools: {} });
    const list = await last(await send(request(1, 'tools/list'), { session: older.session }));
    const { tools } = list.result as { tools: { name: string }[] };
    expect(tools.map((tool) => tool.name)).not.toContain('only_task');
    expect(tools.every((tool) => !('execution' in tool))).toBe(true);
    const get = await last(await send(request(2, 'tasks/get', { taskId: 'x' }), { session: older.session }));
    expect(get.error).toMatchObject({ code: -32601 });
  });

  test('is asked for before anything else, and named from then on', async () => {
    expect((await send(request(1, 'tools/list'))).status).toBe(400);
    expect((await send(undefined, { method: 'GET' })).status).toBe(400);
    const { session } = await open();
    expect(session).toMatch(/^[\x21-\x7e]+$/);
    const answer = await last(await send(request(1, 'ping'), { session, version: '2025-11-25' }));
    expect(answer.result).toEqual({});
  });

  test('refuses a protocol version that is not spoken here', async () => {
    const { session } = await open();
    expect((await send(request(1, 'ping'), { session, version: '1999-01-01' })).status).toBe(400);
  });

  test('is unknown to another person, another client and under a changed id', async () => {
    const { session } = await open();
    for (const [token, id] of [
      ['bob-token', session],
      ['carol-token', session],
      ['alice-other-app', session],
      ['alice-token', `${session.slice(0, -2)}xx`],
      ['alice-token', 'made-up'],
    ] as const) {
      const response = await send(request(1, 'ping'), { token, session: id });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { message: 'Session not found' } });
    }
    expect((await send(request(1, 'ping'), { session, token: 'alice-renewed' })).status).toBe(200);
    expect((await send(request(1, 'ping'), { session, token: 'nobody' })).status).toBe(401);
  });

  test('is unknown after its client has ended it', async () => {
    const { session } = await open();
    expect((await send(undefined, { session, method: 'DELETE', token: 'bob-token' })).status).toBe(404);
    expect((await send(undefined, { session, method: 'DELETE' })).status).toBe(200);
    expect((await send(request(1, 'ping'), { session })).status).toBe(404);
  });

  test('is a new one when a client introduces itself again, whatever id it still carries', async () => {
    const { session } = await open();
    for (const stale of [session, 'long-gone']) {
      const response = await send(initialize(), { session: stale });
      expect(response.status).toBe(200);
      expect(response.headers.get('mcp-session-id')).not.toBe(stale);
    }
  });

  test('ends its streams when its client ends it, and its tasks go on', async () => {
    const { session } = await open();
    const taskId = await createTask(session);
    const stream = await send(request(2, 'tasks/result', { taskId }), { session });
    const reading = (async () => {
      for await (const one of messages(stream)) if (one.id === 2) return one;
      return undefined;
    })();
    await send(undefined, { session, method: 'DELETE' });
    expect(await reading).toBeUndefined();
    expect((await server.ledger.readTask(taskId))?.task.status).toBe('working');
  });

  test('goes on after a restart, on any node, without a new handshake', async () => {
    const { session } = await open();
    const taskId = await createTask(session);
    await server.close();
    server = await startLegacyServer(place);
    const answer = await last(await send(request(2, 'tasks/get', { taskId }), { session }));
    expect(answer.result).toMatchObject({ taskId, status: 'working' });

    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const stream = await send(request(3, 'tasks/result', { taskId }), { session });
    const first = await messages(stream).next();
    expect(first.value).toMatchObject({ method: 'elicitation/create', params: { mode: 'url' } });
  });

  test('is put out of memory when there are too many, without being lost', async () => {
    await server.close();
    server = await startLegacyServer(place, { settings: { sessionsPerOwner: 2, sessions: 3 } });
    const sessions: string[] = [];
    for (let many = 0; many < 4; many += 1) sessions.push((await open()).session);
    await open('bob-token');
    await open('carol-token');
    for (const session of sessions) {
      expect((await last(await send(request(1, 'ping'), { session }))).result).toEqual({});
    }
  });

  test('has a limit of open requests', async () => {
    await server.close();
    server = await startLegacyServer(place, { settings: { openPerSession: 2 } });
    const { session } = await open();
    const taskId = await createTask(session);
    const streams = [
      await send(request(2, 'tasks/result', { taskId }), { session }),
      await send(request(3, 'tasks/result', { taskId }), { session }),
    ];
    const refused = await send(request(4, 'tasks/result', { taskId }), { session });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    for (const stream of streams) await stream.body?.cancel();
    await expect.poll(async () => (await send(request(5, 'ping'), { session })).status).toBe(200);
  });

  test('takes batches only where its revision has them', async () => {
    const { session } = await open();
    expect((await send([request(1, 'ping')], { session })).status).toBe(400);
    const old = await open('alice-token', '2025-03-26');
    const response = await send([request(1, 'ping'), request(2, 'ping')], { session: old.session });
    const ids = new Set<unknown>();
    for await (const message of messages(response)) ids.add(message.id);
    expect(ids).toEqual(new Set([1, 2]));
  });
});

describe('a task', () => {
  test('belongs to its person on any session and after a restart; for others it is unknown', async () => {
    const { session } = await open();
    const taskId = await createTask(session);
    await server.close();
    server = await startLegacyServer(place);
    const alice = await open('alice-renewed');
    const read = async (token: string, on: string, method: string) =>
      await last(await send(request(2, method, { taskId }), { session: on, token }));
    expect(await read('alice-renewed', alice.session, 'tasks/get')).toMatchObject({ result: { taskId } });

    const unknown = await last(
      await send(request(2, 'tasks/get', { taskId: 'task_unknown' }), { session: alice.session }),
    );
    for (const token of ['bob-token', 'carol-token']) {
      const { session: on } = await open(token);
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
        expect(await read(token, on, method)).toEqual({ ...unknown, id: 2 });
      }
    }
    expect(await read('alice-renewed', alice.session, 'tasks/cancel')).toMatchObject({
      result: { status: 'cancelled' },
    });
  });

  test('is listed to its person and client only, page by page, with cursors that nobody else can use', async () => {
    await server.close();
    server = await startLegacyServer(place, { settings: { pageSize: 2 } });
    const { session } = await open();
    const ids = [await createTask(session), await createTask(session), await createTask(session)];
    const bob = await open('bob-token');
    const bobs = await createTask(bob.session, 'bob-token');
    const list = async (cursor?: string, token = 'alice-token', on = session) =>
      await last(
        await send(request(9, 'tasks/list', cursor === undefined ? {} : { cursor }), { session: on, token }),
      );
    const first = await list();
    const { tasks, nextCursor } = first.result as { tasks: { taskId: string }[]; nextCursor: string };
    expect(tasks).toHaveLength(2);
    const second = await list(nextCursor);
    expect(second.result).not.toHaveProperty('nextCursor');
    const all = [...tasks, ...(second.result as { tasks: { taskId: string }[] }).tasks];
    expect(all.map((task) => task.taskId).toSorted()).toEqual(ids.toSorted());
    expect((await list('nonsense')).error).toMatchObject({ code: -32602 });
    expect((await list(nextCursor, 'bob-token', bob.session)).error).toMatchObject({ code: -32602 });
    expect((await list(undefined, 'bob-token', bob.session)).result).toMatchObject({
      tasks: [{ taskId: bobs }],
    });
    const other = await open('alice-other-app');
    expect((await list(undefined, 'alice-other-app', other.session)).result).toEqual({ tasks: [] });
  });
});

describe('an answer', () => {
  async function asked() {
    const { session } = await open();
    const taskId = await createTask(session);
    const running = await server.claim();
    await server.stop(running, [await server.signInNeed(running.owner)]);
    const stream = await send(request(2, 'tasks/result', { taskId }), { session });
    const first = await messages(stream).next();
    const { id } = first.value as { id: string };
    const action = async () => (await server.ledger.readTask(taskId))?.asked[0]?.action;
    return { session, taskId, id, action, stream };
  }

  const accept = (id: unknown) => ({ jsonrpc: '2.0', id, result: { action: 'accept' } });

  test('is in the ledger before it is acknowledged', async () => {
    const { session, id, action } = await asked();
    expect((await send(accept(id), { session })).status).toBe(202);
    expect(await action()).toBe('accept');
  });

  test('counts on another session and another node, and when its stream is gone', async () => {
    const { session, id, action, stream } = await asked();
    await stream.body?.cancel().catch(() => undefined);
    await server.close();
    server = await startLegacyServer(place);
    expect((await send(accept(id), { session })).status).toBe(202);
    expect(await action()).toBe('accept');
  });

  test('is not acknowledged when it answers nothing of this person', async () => {
    const { session, id, action } = await asked();
    const { session: bobs } = await open('bob-token');
    for (const [token, on, response] of [
      ['bob-token', bobs, accept(id)],
      ['alice-token', session, accept('ask/task_unknown/acme/x')],
      ['alice-token', session, accept(17)],
      ['alice-token', session, accept('first/made-up')],
    ] as const) {
      expect((await send(response, { token, session: on })).status).toBe(400);
    }
    expect(await action()).toBeNull();
  });

  test('by a method of another revision is refused, not dropped', async () => {
    const { session, taskId, action } = await asked();
    const params = { taskId, inputResponses: { acme: { action: 'accept' } } };
    const answer = await last(await send(request(7, 'tasks/update', params), { session }));
    expect(answer.error).toMatchObject({ code: -32601 });
    expect(await action()).toBeNull();
  });

  test('with an unknown action, or an error, leaves the question open', async () => {
    const { session, id, action, taskId } = await asked();
    await send({ jsonrpc: '2.0', id, result: { action: 'later' } }, { session });
    await send({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }, { session });
    expect(await action()).toBeNull();
    expect((await server.ledger.readTask(taskId))?.task.status).toBe('input_required');
  });
});

test('a cancelled request ends its stream without an answer, and the task goes on', async () => {
  const { session } = await open();
  const taskId = await createTask(session);
  const stream = await send(request(2, 'tasks/result', { taskId }), { session });
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } };
  expect((await send(cancel, { session })).status).toBe(202);
  const heard: Rpc[] = [];
  for await (const message of messages(stream)) heard.push(message);
  expect(heard).toEqual([]);
  expect((await server.ledger.readTask(taskId))?.task.status).toBe('working');
});

test('an open stream carries comments, so that nothing on the way ends it', async () => {
  const { session } = await open();
  const taskId = await createTask(session);
  const stream = await send(request(2, 'tasks/result', { taskId }), { session });
  expect(stream.headers.get('x-accel-buffering')).toBe('no');
  let text = '';
  for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes(': keepalive')) break;
  }
  expect(text.startsWith(': ')).toBe(true);
});

test('the stream of server messages carries status and finished links of the tasks of its session', async () => {
  const { session } = await open();
  const news = await send(undefined, { session, method: 'GET' });
  const taskId = await createTask(session);
  const heard: Rpc[] = [];
  const reading = (async () => {
    for await (const message of messages(news)) {
      heard.push(message);
      if (message.params?.['status'] === 'completed') return;
    }
  })();
  const running = await server.claim();
  await server.stop(running, [await server.signInNeed(running.owner)]);
  await expect.poll(() => heard.map((one) => one.params?.['status'])).toContain('input_required');
  const stream = await send(request(2, 'tasks/result', { taskId }), { session });
  await messages(stream).next();
  await server.signIn((await server.ledger.readTask(taskId))?.asked[0]?.id ?? '');
  await server.finish(await server.claim(), { content: [] });
  await reading;
  expect(
    heard.filter((one) => one.method === 'notifications/tasks/status').map((one) => one.params?.['taskId']),
  ).toEqual(expect.arrayContaining([taskId]));
  expect(heard.every((one) => one.method !== 'elicitation/create')).toBe(true);
});

test('a client of an older revision is asked forms without a mode, and never a link', async () => {
  const { session } = await open('alice-token', '2025-06-18', { elicitation: { form: {}, url: {} } });
  const stream = await send(
    request(1, 'tools/call', { name: 'ingest', arguments: { source: 'a' }, task: {} }),
    {
      session,
    },
  );
  const running = await server.claim();
  expect(running.modes).toEqual({ form: true, url: false });
  await server.stop(running, [server.formNeed()]);
  const first = await messages(stream).next();
  const asked = first.value as { id: string; params: Record<string, unknown> };
  expect(asked.params).not.toHaveProperty('mode');
  expect(asked.params).toHaveProperty('requestedSchema');
  const answer = {
    jsonrpc: '2.0',
    id: asked.id,
    result: { action: 'accept', content: { user_name: 'Alice' } },
  };
  expect((await send(answer, { session })).status).toBe(202);
  expect((await server.claim()).id).toBe(running.id);
});
