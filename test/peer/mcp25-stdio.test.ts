/** All revisions over one pipe, with the clients of both SDKs. */
import { PassThrough } from 'node:stream';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { StdioServerTransport as ModernPipe } from '@modelcontextprotocol/server/stdio';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openFace2026 } from '../../src/mcp/rev-2026-07-28/face.ts';
import { stateSeal } from '../../src/mcp/rev-2026-07-28/request-state.ts';
import type { ModernFace } from '../../src/mcp/endpoint.ts';
import { serveStdio, type StdioServer } from '../../src/mcp/stdio.ts';
import { silentLog } from '../../src/log.ts';
import { callerNamed, modernRequest, openRig, type Rig } from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

let rig: Rig;
let modern: ModernFace;
let served: StdioServer;
let input: PassThrough;
let output: PassThrough;

beforeEach(async () => {
  rig = await openRig({ tools: TOOLS });
  const common = {
    tasks: rig.engine.tasks,
    catalogue: rig.catalogue,
    log: silentLog,
    wallMs: () => Date.now(),
    nowMs: () => performance.now(),
  };
  const info = { name: 'keyturn', version: '1' };
  modern = openFace2026({ ...common, seal: stateSeal(rig.keyring), info, scrub: (text) => text });
  input = new PassThrough();
  output = new PassThrough();
  served = await serveStdio({
    caller: callerNamed('alice'),
    catalogue: rig.catalogue,
    modern,
    legacy: { ...common, keyring: rig.keyring, serverInfo: info, settings: { holdMs: 5_000 } },
    input,
    output,
    log: silentLog,
  });
});

afterEach(async () => {
  await served.close();
  modern.close();
  await rig.close();
});

/** Lines of the output, parsed. */
async function* lines(): AsyncGenerator<any> {
  let text = '';
  for await (const chunk of output.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      yield JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
    }
  }
}

async function connected(answer: { action: 'accept'; content?: Record<string, string> } | undefined) {
  const client = new Client(
    { name: 'local', version: '1' },
    { capabilities: { elicitation: { form: {}, url: {} } } },
  );
  client.setRequestHandler(ElicitRequestSchema, () => answer ?? { action: 'decline' });
  await client.connect(new StdioServerTransport(output, input));
  return client;
}

test('a client with a handshake calls tools and drives tasks', async () => {
  const client = await connected({ action: 'accept', content: { name: 'Alice' } });
  expect((await client.listTools()).tools.map((tool) => tool.name)).toContain('greet');
  expect(await client.callTool({ name: 'greet', arguments: {} })).toMatchObject({
    content: [{ text: 'Hello, you!' }],
  });
  const seen: string[] = [];
  for await (const message of client.experimental.tasks.callToolStream(
    { name: 'work', arguments: { ms: 50 } },
    CallToolResultSchema,
    { task: {} },
  )) {
    seen.push(message.type);
  }
  expect(seen.at(0)).toBe('taskCreated');
  expect(seen.at(-1)).toBe('result');
});

test('a long call holds up neither the pipe nor another call, and is ended by its client', async () => {
  const client = await connected(undefined);
  const stop = new AbortController();
  const long = client.callTool({ name: 'work', arguments: { ms: 60_000 } }, undefined, {
    signal: stop.signal,
  });
  await client.ping();
  expect(await client.callTool({ name: 'greet', arguments: {} })).toMatchObject({
    content: [{ type: 'text' }],
  });
  stop.abort('enough');
  await expect(long).rejects.toThrow();
  await client.ping();
});

test('a client of 2026-07-28 is served by the other face, also on the same pipe', async () => {
  const client = new ModernClient(
    { name: 'local', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new ModernPipe(output, input));
  expect((await client.listTools()).tools.map((tool) => tool.name)).toContain('greet');
  expect(await client.callTool({ name: 'greet', arguments: { name: 'Alice' } })).toMatchObject({
    content: [{ text: 'Hello, Alice!' }],
  });
  // An argument that would be mirrored in a header over HTTP.
  expect(await client.callTool({ name: 'route', arguments: { region: 'zürich' } })).toMatchObject({
    content: [{ text: 'zürich/-' }],
  });
});

test('a task of 2026-07-28 is created, polled and cancelled over the pipe', async () => {
  const heard = lines();
  const ask = async (id: number, method: string, params: Record<string, unknown>) => {
    input.write(`${modernRequest({ id, method, params }).body}\n`);
    for await (const message of { [Symbol.asyncIterator]: () => ({ next: () => heard.next() }) }) {
      if (message.id === id) return message;
    }
    return undefined;
  };
  const created = await ask(1, 'tools/call', { name: 'work', arguments: { ms: 60_000 } });
  expect(created.result).toMatchObject({ resultType: 'task', status: 'working' });
  const { taskId } = created.result as { taskId: string };
  expect((await ask(2, 'tasks/get', { taskId })).result).toMatchObject({ status: 'working' });
  expect((await ask(3, 'tasks/cancel', { taskId })).result).toBeDefined();
  expect((await ask(4, 'tasks/get', { taskId })).result).toMatchObject({ status: 'cancelled' });
});

test('a call of 2026-07-28 that its client cancels before it has a handle ends its task', async () => {
  const { body } = modernRequest({
    id: 'held',
    method: 'tools/call',
    params: { name: 'work', arguments: { ms: 60_000 } },
    capabilities: {},
  });
  input.write(`${body}\n`);
  const mine = async () =>
    (await rig.engine.tasks.list({ ...callerNamed('alice') }, { after: null, limit: 5 })).map(
      ({ status }) => status,
    );
  await expect.poll(mine).toEqual(['working']);
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'held' } };
  input.write(`${JSON.stringify(cancel)}\n`);
  await expect.poll(mine).toEqual(['cancelled']);
});

test('what is no message is answered with an error, and the pipe goes on', async () => {
  const heard = lines();
  input.write('not json\n');
  expect((await heard.next()).value).toMatchObject({ error: { code: -32700 } });
  input.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
  expect((await heard.next()).value).toMatchObject({ id: 1, error: { code: -32600 } });
  input.write('{"jsonrpc":"2.0","id":2,"method":"ping"}\n');
  expect((await heard.next()).value).toEqual({ jsonrpc: '2.0', id: 2, result: {} });
});

test('the end of the input closes the pipe, and tasks go on', async () => {
  const client = await connected(undefined);
  const stream = client.experimental.tasks.callToolStream(
    { name: 'work', arguments: { ms: 60_000 } },
    CallToolResultSchema,
    { task: {} },
  );
  const first = await stream.next();
  if (first.done === true || first.value.type !== 'taskCreated') throw new Error('no task');
  input.end();
  await served.closed;
  const task = await rig.engine.tasks.read(callerNamed('alice'), first.value.task.taskId);
  expect(task?.status).toBe('working');
});
