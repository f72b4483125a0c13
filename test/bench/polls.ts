/**
 * Polls a second, side by side in one run: `tasks/get` of ours (access token verified, task durable in SQLite), of a
 * server object per request on `@modelcontextprotocol/server`, of `@modelcontextprotocol/sdk` 1.x with its in-memory
 * task store, and a bare Fastify that answers a POST of the same shape (the limit). Servers run in a process of their own
 * each, loaded in turn from this process, three rounds, medians. Quote ratios: absolute numbers belong to the machine.
 *
 * `node test/bench/polls.ts [seconds]`
 */
import { fork } from 'node:child_process';
import autocannon from 'autocannon';

interface Target {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const ROLES = [
  'bare Fastify',
  'Keyturn',
  'sdk 1.x, in-memory task store',
  'server 2.x, object per request',
] as const;
type Role = (typeof ROLES)[number];

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
};

function get(taskId: string, meta?: object): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tasks/get',
    params: { taskId, ...(meta === undefined ? {} : { _meta: meta }) },
  });
}

const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

function modernHeaders(taskId: string): Record<string, string> {
  return {
    ...JSON_HEADERS,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tasks/get',
    'mcp-name': taskId,
  };
}

const SNAPSHOT = {
  status: 'working',
  statusMessage: 'The operation is in progress.',
  createdAt: '2026-11-25T10:30:00Z',
  lastUpdatedAt: '2026-11-25T10:40:00Z',
  ttlMs: 60_000,
  pollIntervalMs: 5_000,
};

async function serve(role: Role): Promise<Target> {
  const taskId = 'task_0123456789abcdefghijklmn';
  switch (role) {
    case 'bare Fastify': {
      const { default: Fastify } = await import('fastify');
      const app = Fastify();
      app.post('/mcp', (request, reply) => {
        const { id, params } = request.body as { id: number; params: { taskId: string } };
        return reply.send({
          jsonrpc: '2.0',
          id,
          result: { resultType: 'complete', taskId: params.taskId, ...SNAPSHOT },
        });
      });
      const url = await app.listen({ host: '127.0.0.1', port: 0 });
      return { url: `${url}/mcp`, headers: modernHeaders(taskId), body: get(taskId, MODERN) };
    }
    case 'Keyturn': {
      const { openWorld } = await import('../../src/world.ts');
      const { openHost } = await import('../../src/sandbox/mcp-client.ts');
      const world = await openWorld({ config: { log: { level: 'silent' } } });
      const accessToken = await world.sandbox.issuer.issueAccessToken({
        sub: 'alice',
        clientId: 'bench',
        scope: 'mcp:tools',
        resource: world.mcpUrl,
        expiresInSeconds: 600,
      });
      const host = await openHost({ mcpUrl: world.mcpUrl, accessToken });
      // A task that waits for its person: what most polls in the field ask for.
      const task = await host.start('import_records');
      await host.until(task.taskId, ['input_required']);
      return {
        url: world.mcpUrl,
        headers: { ...modernHeaders(task.taskId), authorization: `Bearer ${accessToken}` },
        body: get(task.taskId, MODERN),
      };
    }
    case 'server 2.x, object per request': {
      const { createMcpHandler, McpServer } = await import('@modelcontextprotocol/server');
      const { z } = await import('zod');
      const { createServer } = await import('node:http');
      const handler = createMcpHandler(() => {
        const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
        mcp.server.setRequestHandler(
          'tasks/get',
          { params: z.looseObject({ taskId: z.string() }), result: z.looseObject({}) },
          (params) => ({ resultType: 'complete', taskId: params.taskId, ...SNAPSHOT }),
        );
        return mcp;
      });
      const server = createServer((request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
          void handler
            .fetch(
              new Request(`http://127.0.0.1${request.url ?? '/'}`, {
                method: 'POST',
                headers: request.headers as Record<string, string>,
                body: Buffer.concat(chunks),
              }),
            )
            .then(async (answer) => {
              response.writeHead(answer.status, Object.fromEntries(answer.headers));
              response.end(await answer.text());
            });
        });
      });
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      const { port } = server.address() as { port: number };
      return {
        url: `http://127.0.0.1:${port}/mcp`,
        headers: modernHeaders(taskId),
        body: get(taskId, MODERN),
      };
    }
    case 'sdk 1.x, in-memory task store': {
      const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
      const { StreamableHTTPServerTransport } =
        await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
      const { InMemoryTaskStore } =
        await import('@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js');
      const { createServer } = await import('node:http');
      const store = new InMemoryTaskStore();
      const mcp = new McpServer(
        { name: 'bench', version: '1.0.0' },
        { capabilities: { tasks: { list: {}, cancel: {} } }, taskStore: store },
      );
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => 'bench-session',
        enableJsonResponse: true,
      });
      await mcp.connect(transport as never);
      const server = createServer((request, response) => void transport.handleRequest(request, response));
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      const { port } = server.address() as { port: number };
      const url = `http://127.0.0.1:${port}/mcp`;
      const begin = await fetch(url, {
        method: 'POST',
        headers: JSON_HEADERS,
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 0,
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'bench', version: '1.0.0' },
          },
        }),
      });
      const session = begin.headers.get('mcp-session-id') ?? '';
      const headers = { ...JSON_HEADERS, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' };
      await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
      });
      const task = await store.createTask(
        { ttl: 600_000 },
        0,
        { method: 'tools/call', params: { name: 'x' } },
        session,
      );
      return { url, headers, body: get(task.taskId) };
    }
  }
}

/** A server that runs, and how to load it. */
interface Running {
  readonly role: Role;
  load(seconds: number): Promise<number>;
  end(): void;
}

async function start(role: Role): Promise<Running> {
  const child = fork(import.meta.filename, ['--serve', role], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const target = await new Promise<Target>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Target));
    child.once('exit', (code) => reject(new Error(`${role}: the server ended with ${code}`)));
  });
  const { url, headers, body } = target;
  const answer = await fetch(url, { method: 'POST', headers, body });
  const text = await answer.text();
  if (answer.status !== 200 || !text.includes('"status"'))
    throw new Error(`${role}: ${answer.status} ${text}`);
  return {
    role,
    async load(seconds) {
      const result = await autocannon({
        url,
        method: 'POST',
        headers,
        body,
        connections: 16,
        duration: seconds,
      });
      if (result.non2xx > 0 || result.errors > 0) throw new Error(`${role}: ${result.non2xx} bad answers`);
      return result.requests.average;
    },
    end() {
      child.removeAllListeners('exit');
      child.kill('SIGKILL');
    },
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

if (process.argv[2] === '--serve') {
  process.send?.(await serve(process.argv[3] as Role));
} else {
  const seconds = Number(process.argv[2] ?? 3);
  const running = await Promise.all(ROLES.map(start));
  const rates = new Map<Role, number[]>(ROLES.map((role) => [role, []]));
  for (const one of running) await one.load(1);
  // In turn, round after round: a machine that changes its pace changes it for all of them.
  for (let round = 0; round < 3; round += 1) {
    for (const one of running) rates.get(one.role)?.push(await one.load(seconds));
  }
  running.forEach((one) => one.end());
  const limits = rates.get('bare Fastify') ?? [];
  for (const [role, values] of rates) {
    const share = median(values.map((value, round) => value / (limits[round] ?? 1)));
    process.stdout.write(
      `${role.padEnd(34)} ${median(values).toFixed(0).padStart(7)} polls/s  ${(100 * share).toFixed(0).padStart(4)} % of the limit\n`,
    );
  }
}
