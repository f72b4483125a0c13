import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineJob, text } from '../../src/engine/define.ts';
import type { Authenticate } from '../../src/mcp/bearer.ts';
import { openEventStream } from '../../src/mcp/rev-2026-07-28/event-stream.ts';
import {
  callerNamed,
  modernRequest,
  openRig,
  rpc,
  TASKS,
  type Rig,
  type RigOptions,
} from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

/** Carries a result that does not fit into the buffers of a connection. */
const heavy = defineJob({
  name: 'heavy',
  description: 'Ends with a large result.',
  input: z.object({ kib: z.int() }),
  run: (job) => Promise.resolve(text('x'.repeat(job.args.kib * 1_024))),
});

const rigs: Rig[] = [];

async function open(options: Partial<RigOptions> = {}): Promise<{ rig: Rig; url: string }> {
  const rig = await openRig({ tools: [...TOOLS, heavy], ...options });
  rigs.push(rig);
  return { rig, url: await rig.listen() };
}

afterEach(async () => {
  await Promise.all(rigs.splice(0).map((rig) => rig.close()));
});

interface Message {
  readonly method?: string;
  readonly id?: unknown;
  readonly params?: { readonly _meta?: Record<string, unknown>; readonly [name: string]: unknown };
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly data?: Record<string, unknown> };
}

interface Stream {
  readonly response: IncomingMessage;
  readonly messages: Message[];
  /** Everything that came, comments included. */
  text(): string;
  readonly closed: Promise<void>;
  cut(): void;
}

interface ListenCall {
  readonly notifications?: unknown;
  readonly as?: string;
  readonly id?: string | number;
  readonly capabilities?: unknown;
  /** Reads nothing. */
  readonly deaf?: boolean;
}

async function listen(url: string, call: ListenCall): Promise<Stream> {
  const { headers, body } = modernRequest({
    method: 'subscriptions/listen',
    params: call.notifications === undefined ? {} : { notifications: call.notifications },
    ...(call.as === undefined ? {} : { as: call.as }),
    ...(call.id === undefined ? {} : { id: call.id }),
    ...(call.capabilities === undefined ? {} : { capabilities: call.capabilities }),
  });
  const sent = httpRequest(url, { method: 'POST', agent: false, headers });
  sent.on('error', () => undefined);
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const messages: Message[] = [];
  let all = '';
  let rest = '';
  const closed = new Promise<void>((resolve) => {
    response.on('close', resolve);
  });
  response.on('error', () => undefined);
  if (call.deaf === true) response.pause();
  else {
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      all += chunk;
      rest += chunk;
      const events = rest.split('\n\n');
      rest = events.pop() ?? '';
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (data !== undefined) messages.push(JSON.parse(data) as Message);
      }
    });
  }
  return { response, messages, text: () => all, closed, cut: () => sent.destroy() };
}

async function start(
  rig: Rig,
  name: string,
  args: Record<string, unknown> = {},
  as = 'alice',
): Promise<string> {
  const { body } = await rpc(rig, { method: 'tools/call', params: { name, arguments: args }, as });
  return body.result.taskId as string;
}

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

test('a stream begins with what is honoured, is not buffered by proxies, and carries its id in every message', async () => {
  const { rig, url } = await open();
  const taskId = await start(rig, 'work', { ms: 60_000 });
  const stream = await listen(url, {
    id: 'sub-7',
    notifications: {
      taskIds: [taskId, taskId],
      toolsListChanged: true,
      promptsListChanged: true,
      resourceSubscriptions: ['file:///x'],
    },
  });
  expect(stream.response.statusCode).toBe(200);
  expect(stream.response.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'x-accel-buffering': 'no',
    'cache-control': 'no-cache, no-transform, no-store',
  });
  await expect.poll(() => stream.messages.length).toBe(2);
  expect(stream.messages[0]).toEqual({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: {
      notifications: { toolsListChanged: true, taskIds: [taskId] },
      _meta: { [SUBSCRIPTION]: 'sub-7' },
    },
  });
  expect(stream.messages[1]).toMatchObject({
    method: 'notifications/tasks',
    params: { taskId, status: 'working' },
  });
  await rpc(rig, { method: 'tasks/cancel', params: { taskId } });
  await expect.poll(() => stream.messages.at(-1)?.params?.['status']).toBe('cancelled');
  for (const message of stream.messages) expect(message.params?._meta?.[SUBSCRIPTION]).toBe('sub-7');
  stream.cut();
});

test('a quiet stream is kept alive by comments', async () => {
  const { url } = await open({ mcp: { listen: { keepAliveMs: 50 } } });
  const stream = await listen(url, { notifications: {} });
  await expect.poll(() => stream.text().match(/^:$/gm)?.length ?? 0).toBeGreaterThan(2);
  expect(stream.messages).toHaveLength(1);
  expect(stream.messages[0]?.params).toMatchObject({ notifications: {} });
  stream.cut();
});

test.each<[string, ListenCall, number, number]>([
  ['task ids without the extension', { notifications: { taskIds: [] }, capabilities: {} }, 400, -32021],
  ['no filter', {}, 200, -32602],
  ['a filter that is a list', { notifications: [] }, 200, -32602],
  ['task ids that are a text', { notifications: { taskIds: 'task_x' } }, 200, -32602],
  ['task ids that are numbers', { notifications: { taskIds: [1] } }, 200, -32602],
  [
    'more task ids than are served',
    { notifications: { taskIds: Array.from({ length: 257 }, (_, at) => `task_${at}`) } },
    200,
    -32602,
  ],
])('%s: refused as plain JSON, before any stream', async (_what, call, status, code) => {
  const { url } = await open();
  const stream = await listen(url, call);
  await stream.closed;
  expect(stream.response.statusCode).toBe(status);
  expect(stream.response.headers['content-type']).toContain('application/json');
  expect((JSON.parse(stream.text()) as Message).error?.code).toBe(code);
});

test('nothing of a task is told to another person, however they name it', async () => {
  const { rig, url } = await open();
  const taskId = await start(rig, 'confirm', { file: 'secret-name.txt' });
  const stream = await listen(url, { as: 'bob', notifications: { taskIds: [taskId, 'task_nobody'] } });
  await expect.poll(() => stream.messages.length).toBe(1);
  expect(stream.messages[0]?.params).toMatchObject({ notifications: { taskIds: [] } });
  await rpc(rig, { method: 'tasks/cancel', params: { taskId } });
  // Bob's own task is heard of, so that what is missing is not merely late.
  const own = await start(rig, 'work', {}, 'bob');
  const second = await listen(url, { as: 'bob', notifications: { taskIds: [own] } });
  await expect.poll(() => second.messages.at(-1)?.params?.['status']).toBe('completed');
  expect(stream.text()).not.toContain('secret-name');
  expect(stream.messages).toHaveLength(1);
  stream.cut();
  second.cut();
});

test('a stream lists only the questions that its own request can show', async () => {
  const { rig, url } = await open();
  const taskId = await start(rig, 'confirm', { file: 'a' });
  const urlOnly = { extensions: { [TASKS]: {} }, elicitation: { url: {} } };
  const [able, unable] = await Promise.all([
    listen(url, { notifications: { taskIds: [taskId] } }),
    listen(url, { notifications: { taskIds: [taskId] }, capabilities: urlOnly }),
  ]);
  await expect.poll(() => able.messages.at(-1)?.params?.['status']).toBe('input_required');
  await expect.poll(() => unable.messages.at(-1)?.params?.['status']).toBe('input_required');
  expect(Object.keys(able.messages.at(-1)?.params?.['inputRequests'] as object)).toEqual(['sure']);
  expect(unable.messages.at(-1)?.params?.['inputRequests']).toEqual({});
  able.cut();
  unable.cut();
});

test('one person has a bounded number of streams; a closed one makes room', async () => {
  const { url } = await open({ mcp: { listen: { streamsPerOwner: 2 } } });
  const first = await listen(url, { notifications: {} });
  const second = await listen(url, { notifications: {} });
  const third = await listen(url, { notifications: {} });
  await third.closed;
  expect(third.response.statusCode).toBe(429);
  expect((JSON.parse(third.text()) as Message).error).toMatchObject({
    data: { reason: 'too_many_requests', limit: 'streams' },
  });
  const other = await listen(url, { as: 'bob', notifications: {} });
  expect(other.response.statusCode).toBe(200);
  first.cut();
  await expect
    .poll(async () => {
      const again = await listen(url, { notifications: {} });
      return again.response.statusCode;
    })
    .toBe(200);
  second.cut();
  other.cut();
});

test('a stream that the server ends says so with its result', async () => {
  const { rig, url } = await open();
  const stream = await listen(url, { id: 3, notifications: {} });
  await expect.poll(() => stream.messages.length).toBe(1);
  await rig.app.close();
  await stream.closed;
  expect(stream.messages.at(-1)).toEqual({
    jsonrpc: '2.0',
    id: 3,
    result: {
      resultType: 'complete',
      _meta: {
        'io.modelcontextprotocol/serverInfo': { name: 'rig', version: '1.2.3' },
        [SUBSCRIPTION]: 3,
      },
    },
  });
});

test('a stream ends with the token that opened it', async () => {
  const authenticate: Authenticate = () => ({ ...callerNamed('alice'), validUntilMs: Date.now() + 150 });
  const { url } = await open({ authenticate });
  const stream = await listen(url, { id: 4, notifications: {} });
  await stream.closed;
  expect(stream.messages.at(-1)).toMatchObject({ id: 4, result: { resultType: 'complete' } });
});

test('a reader that does not read is dropped, and nothing piles up for it', async () => {
  const { rig, url } = await open({
    mcp: { listen: { patienceMs: 300, keepAliveMs: 100, streamsPerOwner: 1 } },
  });
  const ids = await Promise.all(Array.from({ length: 12 }, () => start(rig, 'heavy', { kib: 1_024 })));
  for (const id of ids) {
    await expect
      .poll(async () => (await rpc(rig, { method: 'tasks/get', params: { taskId: id } })).body.result.status)
      .toBe('completed');
  }
  const connected = once(rig.app.server, 'connection') as Promise<[Socket]>;
  const stream = await listen(url, { notifications: { taskIds: ids }, deaf: true });
  const [socket] = await connected;
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, socket.writableLength);
  }, 10);
  if (!socket.closed) await once(socket, 'close');
  clearInterval(watch);
  // One result of twelve may wait for the reader, not all of them.
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(3 * 1_048_576);
  stream.cut();
  // The server has forgotten it: its place is free again.
  const next = await listen(url, { notifications: {} });
  expect(next.response.statusCode).toBe(200);
  next.cut();
});

test('a call that is held when the server closes is told to come again, and its task goes on', async () => {
  const { rig, url } = await open({ mcp: { holdMs: 30_000 }, waitsForRequests: true });
  const tasks = () => rig.engine.tasks.list(callerNamed('alice'), { after: null, limit: 5 });
  const { headers, body } = modernRequest({
    method: 'tools/call',
    params: { name: 'work', arguments: { ms: 60_000 } },
    capabilities: {},
  });
  const sent = httpRequest(url, { method: 'POST', agent: false, headers });
  sent.end(body);
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  await expect.poll(async () => (await tasks()).length).toBe(1);
  const closing = rig.app.close();
  const [response] = await answered;
  const told = JSON.parse(await readAll(response)) as Message;
  expect(told.result).toMatchObject({ resultType: 'input_required' });
  expect(typeof told.result?.['requestState']).toBe('string');
  await closing;
  expect((await tasks())[0]?.status).toBe('working');
});

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

test('a stream whose client went away before it began is over at once', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const arrived = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    const sent = httpRequest({ host: '127.0.0.1', port, method: 'POST', agent: false });
    sent.on('error', () => undefined);
    sent.end();
    const [, response] = await arrived;
    sent.destroy();
    await once(response, 'close');
    let ends = 0;
    const stream = openEventStream(response, {
      keepAliveMs: 5,
      patienceMs: 5,
      onRoom: () => expect.unreachable(),
      onClosed: () => (ends += 1),
    });
    expect(ends).toBe(1);
    expect(stream.ready()).toBe(false);
    stream.send('{}');
    stream.end('{}');
    expect(ends).toBe(1);
  } finally {
    server.close();
  }
});
