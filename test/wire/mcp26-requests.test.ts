import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  callerNamed,
  CAPABLE,
  modernRequest,
  openRig,
  rpc,
  TASKS,
  type Rig,
  type RpcCall,
} from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

let rig: Rig;
let taskId: string;

beforeAll(async () => {
  rig = await openRig({ tools: TOOLS });
  const created = await rpc(rig, {
    method: 'tools/call',
    params: { name: 'work', arguments: { ms: 60_000 } },
  });
  taskId = created.body.result.taskId as string;
});

afterAll(() => rig.close());

/** Sends a body as it is, with headers of a good request laid under the given ones. */
async function raw(payload: string | Buffer, headers: Record<string, string | undefined> = {}, as?: string) {
  const good = modernRequest({ method: 'tools/list', ...(as === undefined ? {} : { as }) }).headers;
  const sent = Object.fromEntries(
    Object.entries({ host: 'localhost:3000', ...good, ...headers }).filter(
      (one): one is [string, string] => one[1] !== undefined,
    ),
  );
  const answer = await rig.app.inject({ method: 'POST', url: '/mcp', headers: sent, payload });
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: answer.body === '' ? undefined : (answer.json() as { id?: unknown; error?: { code: number } }),
  };
}

describe('what is checked before a method is known', () => {
  const list = modernRequest({ method: 'tools/list' }).body;

  test.each<[string, string, Record<string, string | undefined>, number, number]>([
    ['a body that is not JSON', '{"jsonrpc":', {}, 400, -32700],
    ['an empty body', '', {}, 400, -32700],
    ['a batch', `[${list}]`, {}, 400, -32600],
    ['an empty batch', '[]', {}, 400, -32600],
    ['a body that is a text', '"tools/list"', {}, 400, -32600],
    ['a body that is null', 'null', {}, 400, -32600],
    ['another JSON-RPC version', '{"jsonrpc":"1.0","id":1,"method":"tools/list"}', {}, 400, -32600],
    ['no method', '{"jsonrpc":"2.0","id":1}', {}, 400, -32600],
    ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"tools/list"}', {}, 400, -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"tools/list"}', {}, 400, -32600],
    ['an id that is a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', {}, 400, -32600],
    [
      'parameters that are a list',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
      {},
      400,
      -32600,
    ],
    ['another content type', list, { 'content-type': 'text/plain' }, 415, -32600],
    ['no content type', list, { 'content-type': undefined }, 415, -32600],
    ['a form', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }, 415, -32600],
    ['a foreign origin', list, { origin: 'https://evil.example' }, 403, -32602],
    ['an opaque origin', list, { origin: 'null' }, 403, -32602],
    ['a host that was rebound to this machine', list, { host: 'evil.example' }, 403, -32602],
  ])('%s is refused', async (_what, payload, headers, status, code) => {
    const answer = await raw(payload, headers);
    expect(answer.status).toBe(status);
    expect(answer.body?.error?.code).toBe(code);
    // Only what could be read is echoed.
    expect([undefined, 1]).toContain(answer.body?.id);
  });

  test('a body of one mebibyte is read, one byte more is refused with 413', async () => {
    const fill = (bytes: number): string => {
      const empty = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: { fill: '' } });
      return empty.replace('"fill":""', `"fill":"${'x'.repeat(bytes - empty.length)}"`);
    };
    expect((await raw(fill(1024 * 1024))).status).toBe(400);
    const over = await raw(fill(1024 * 1024 + 1));
    expect(over.status).toBe(413);
    expect(over.body?.error?.code).toBe(-32600);
  });

  test('a content type with a character set is JSON as well', async () => {
    expect((await raw(list, { 'content-type': 'Application/JSON; charset=utf-8' })).status).toBe(200);
  });

  test('our own origin and any loopback name are welcome', async () => {
    for (const headers of [
      { origin: 'http://localhost:3000' },
      { origin: 'http://127.0.0.1:5173', host: '127.0.0.1:3000' },
      { host: '[::1]:3000' },
    ]) {
      expect((await raw(list, headers)).status).toBe(200);
    }
  });

  test('nothing of a body is read for a caller that is not known', async () => {
    const answer = await raw('{"broken":', { authorization: undefined });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe(
      'Bearer scope="mcp:tools", resource_metadata="http://localhost:3000/.well-known/oauth-protected-resource/mcp"',
    );
  });

  test('a notification is accepted without a body', async () => {
    for (const method of ['notifications/cancelled', 'notifications/initialized', 'notifications/odd']) {
      const answer = await raw(JSON.stringify({ jsonrpc: '2.0', method }));
      expect(answer.status).toBe(202);
      expect(answer.body).toBeUndefined();
    }
  });

  test.each(['GET', 'DELETE', 'PUT', 'OPTIONS', 'HEAD'] as const)(
    '%s is not for this revision',
    async (method) => {
      const answer = await rig.app.inject({
        method,
        url: '/mcp',
        headers: {
          host: 'localhost:3000',
          authorization: 'Bearer alice',
          'mcp-protocol-version': '2026-07-28',
          accept: 'text/event-stream',
        },
      });
      expect([404, 405]).toContain(answer.statusCode);
    },
  );

  test('a GET of an older client without a face for it is told so', async () => {
    const answer = await rig.app.inject({
      method: 'GET',
      url: '/mcp',
      headers: { host: 'localhost:3000', authorization: 'Bearer alice', accept: 'text/event-stream' },
    });
    expect(answer.statusCode).toBe(405);
    expect(answer.headers['allow']).toBe('POST');
  });

  test('an initialize without a face for it names the revisions that are served', async () => {
    const answer = await raw(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 9,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25' },
      }),
      { 'mcp-protocol-version': undefined, 'mcp-method': undefined },
    );
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      id: 9,
      error: { code: -32022, data: { supported: ['2026-07-28'], requested: '2025-11-25' } },
    });
  });
});

describe('what every request of this revision must carry', () => {
  test.each<[string, Record<string, unknown> | undefined]>([
    ['no _meta', undefined],
    ['_meta that is a list', { _meta: [] }],
    ['no version', { _meta: { 'io.modelcontextprotocol/clientCapabilities': {} } }],
    [
      'a version that is a number',
      {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': 7,
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    ],
    ['no capabilities', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }],
    [
      'capabilities that are a list',
      {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': [],
        },
      },
    ],
  ])('%s is refused with 400 and −32602', async (_what, params) => {
    const answer = await raw(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/list',
        ...(params === undefined ? {} : { params }),
      }),
    );
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ id: 1, error: { code: -32602 } });
  });

  test('odd values of what is optional do no harm', async () => {
    const answer = await rpc(rig, {
      method: 'tools/list',
      capabilities: { elicitation: 'yes', extensions: 7, sampling: null },
      meta: { 'io.modelcontextprotocol/clientInfo': 'me', traceparent: 5, progressToken: {} },
    });
    expect(answer.status).toBe(200);
    expect(answer.body.result.tools.length).toBe(TOOLS.length);
  });

  test.each<[string, RpcCall]>([
    ['1999-01-01', { method: 'tools/list', version: '1999-01-01' }],
    ['2025-11-25', { method: 'tools/list', version: '2025-11-25' }],
    ['an unknown method of an unknown revision', { method: 'odd/method', version: 'v999' }],
    // The version is judged before the headers that only served versions define.
    ['without Mcp-Method', { method: 'tools/list', version: 'v999', headers: { 'mcp-method': undefined } }],
  ])('revision %s is refused with 400 and −32022', async (_what, call) => {
    const answer = await rpc(rig, call);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      code: -32022,
      data: { supported: ['2026-07-28'], requested: call.version },
    });
  });

  test.each<[string, RpcCall]>([
    ['no version header', { method: 'tools/list', headers: { 'mcp-protocol-version': undefined } }],
    [
      'another version in the header',
      { method: 'tools/list', headers: { 'mcp-protocol-version': '2025-11-25' } },
    ],
    ['no Mcp-Method', { method: 'tools/list', headers: { 'mcp-method': undefined } }],
    ['another Mcp-Method', { method: 'tools/list', headers: { 'mcp-method': 'prompts/list' } }],
    ['Mcp-Method in other letters', { method: 'tools/list', headers: { 'mcp-method': 'TOOLS/LIST' } }],
    [
      'no Mcp-Name of a tool',
      { method: 'tools/call', params: { name: 'greet' }, headers: { 'mcp-name': undefined } },
    ],
    [
      'another Mcp-Name of a tool',
      { method: 'tools/call', params: { name: 'greet' }, headers: { 'mcp-name': 'work' } },
    ],
    [
      'an Mcp-Name that is badly encoded',
      { method: 'tools/call', params: { name: 'greet' }, headers: { 'mcp-name': '=?base64?Z3JlZX!?=' } },
    ],
    [
      'no Mcp-Name of a task',
      { method: 'tasks/get', params: { taskId: 'x' }, headers: { 'mcp-name': undefined } },
    ],
    [
      'another Mcp-Name of a task',
      { method: 'tasks/get', params: { taskId: 'x' }, headers: { 'mcp-name': 'y' } },
    ],
    [
      'no Mcp-Name of an update',
      { method: 'tasks/update', params: { taskId: 'x' }, headers: { 'mcp-name': undefined } },
    ],
    [
      'no Mcp-Name of a cancel',
      { method: 'tasks/cancel', params: { taskId: 'x' }, headers: { 'mcp-name': undefined } },
    ],
  ])('%s is refused with 400 and −32020', async (_what, call) => {
    const answer = await rpc(rig, call);
    expect(answer.status).toBe(400);
    expect(answer.body.error?.code).toBe(-32020);
    expect(answer.body.id).toBe(1);
  });

  test.each([`  ${'greet'}\t`, '=?base64?Z3JlZXQ=?='])('Mcp-Name "%s" is the tool greet', async (name) => {
    const answer = await rpc(rig, {
      method: 'tools/call',
      params: { name: 'greet', arguments: {} },
      headers: { 'mcp-name': name },
    });
    expect(answer.body.result.content).toEqual([{ type: 'text', text: 'Hello, you!' }]);
  });

  test.each([
    'initialize',
    'ping',
    'tasks/list',
    'tasks/result',
    'resources/list',
    'prompts/get',
    'logging/setLevel',
    'constructor',
    '__proto__',
  ])('%s is not a method of this revision: 404 and −32601', async (method) => {
    const answer = await rpc(rig, { method, id: 'seven' });
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({ id: 'seven', error: { code: -32601 } });
  });
});

describe('whom a task is for', () => {
  const undeclared = [
    {},
    { extensions: {} },
    { extensions: { [TASKS]: true } },
    { extensions: [TASKS] },
    { tasks: {} },
  ];

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '%s without the extension on this very request is refused before anything is looked up',
    async (method) => {
      for (const capabilities of undeclared) {
        for (const id of [taskId, 'task_unknown']) {
          const answer = await rpc(rig, { method, params: { taskId: id, inputResponses: {} }, capabilities });
          expect(answer.status).toBe(400);
          expect(answer.body.error).toMatchObject({
            code: -32021,
            data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
          });
        }
      }
    },
  );

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '%s answers the same for an unknown and for a foreign id',
    async (method) => {
      const ask = (id: string, as: string) =>
        rpc(rig, { method, as, params: { taskId: id, inputResponses: {} } });
      const unknown = await ask('task_AAAAAAAAAAAAAAAAAAAAAAAA', 'bob');
      const foreign = await ask(taskId, 'bob');
      const long = await ask('x'.repeat(300), 'bob');
      expect(unknown.status).toBe(200);
      expect(unknown.body.error).toMatchObject({ code: -32602, data: { reason: 'task_unknown' } });
      expect(foreign).toEqual({ ...unknown, headers: foreign.headers });
      expect(long).toEqual({ ...unknown, headers: long.headers });
      expect(Object.keys(foreign.headers)).toEqual(Object.keys(unknown.headers));
      // Nobody's attempt has touched it.
      const own = await rpc(rig, { method: 'tasks/get', params: { taskId } });
      expect(own.body.result.status).toBe('working');
    },
  );

  test('another client of the same person may follow the task', async () => {
    expect(callerNamed('alice@other').owner).toBe(callerNamed('alice').owner);
    const answer = await rpc(rig, { method: 'tasks/get', as: 'alice@other', params: { taskId } });
    expect(answer.body.result.taskId).toBe(taskId);
  });

  test.each<[string, string, Record<string, unknown>]>([
    ['a task id that is a number', 'tasks/get', { taskId: 5 }],
    ['no task id', 'tasks/cancel', {}],
    ['no input responses', 'tasks/update', { taskId: 'x' }],
    ['input responses that are a list', 'tasks/update', { taskId: 'x', inputResponses: [] }],
    ['input responses that are null', 'tasks/update', { taskId: 'x', inputResponses: null }],
    [
      'a hundred and one input responses',
      'tasks/update',
      {
        taskId: 'x',
        inputResponses: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`k${at}`, {}])),
      },
    ],
  ])('%s is refused with −32602', async (_what, method, params) => {
    const answer = await rpc(rig, { method, params });
    expect(answer.status).toBe(200);
    expect(answer.body.error).toMatchObject({ code: -32602, data: { reason: 'arguments_invalid' } });
  });
});

describe('what the server says of itself', () => {
  test('server/discover names revisions, tools, the tasks extension, and who it is', async () => {
    const { body } = await rpc(rig, { method: 'server/discover', capabilities: {} });
    expect(body.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true }, extensions: { [TASKS]: {} } },
      instructions: 'Call greet.',
      ttlMs: 300_000,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'rig', version: '1.2.3' } },
    });
    expect(body.result.capabilities.tasks).toBeUndefined();
  });

  test('tools/list has schemas, header marks and cache hints; a tool that needs nothing comes first', async () => {
    const { body } = await rpc(rig, { method: 'tools/list' });
    expect(body.result).toMatchObject({ resultType: 'complete', ttlMs: 300_000, cacheScope: 'private' });
    const tools = body.result.tools as { name: string; inputSchema: Record<string, unknown> }[];
    expect(tools[0]?.name).toBe('greet');
    expect(tools.find((tool) => tool.name === 'route')?.inputSchema).toMatchObject({
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        shard: { type: 'integer', 'x-mcp-header': 'Shard' },
      },
      required: ['region'],
    });
    expect(tools.find((tool) => tool.name === 'interview')?.inputSchema).toEqual({
      type: 'object',
      additionalProperties: false,
    });
    const again = await rpc(rig, { method: 'tools/list' });
    expect(again.body.result.tools).toEqual(body.result.tools);
  });

  test('a cursor that this server never gave is refused', async () => {
    const { body } = await rpc(rig, { method: 'tools/list', params: { cursor: 'next' } });
    expect(body.error?.code).toBe(-32602);
  });

  test('answers are not to be stored', async () => {
    const answer = await rpc(rig, { method: 'tools/list' });
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test('the metadata of the resource is at both places and open to browsers', async () => {
    for (const path of ['', '/mcp']) {
      const answer = await rig.app.inject({ url: `/.well-known/oauth-protected-resource${path}` });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers['access-control-allow-origin']).toBe('*');
      expect(answer.json()).toEqual({
        resource: 'http://localhost:3000/mcp',
        authorization_servers: ['https://issuer.example'],
        scopes_supported: ['mcp:tools'],
        bearer_methods_supported: ['header'],
        resource_name: 'Rig',
      });
    }
  });
});

test('errors inside are logged and leave without their text', async () => {
  const { body, status } = await rpc(rig, {
    method: 'tools/call',
    params: { name: 'breaks', arguments: { how: 'bug' } },
    capabilities: CAPABLE,
  });
  expect(status).toBe(200);
  expect(JSON.stringify(body)).not.toContain('detail');
  expect(body.error).toMatchObject({ code: -32603, data: { reason: 'job_failed' } });
  expect(rig.lines.some((line) => line.event === 'tool.failed')).toBe(true);
});
