/**
 * A host for the demo and for tests: `@modelcontextprotocol/client` on revision 2026-07-28 with the tasks extension.
 * Version 2.4 of that client knows no task results; its transport is wrapped so that one arrives as a plain result with
 * its members kept. Every byte of the traffic is recorded, so that it can be searched for secrets.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';

const TASKS = 'io.modelcontextprotocol/tasks';

const task = z.looseObject({
  taskId: z.string(),
  status: z.enum(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  statusMessage: z.string().optional(),
  ttlMs: z.number().nullable(),
  pollIntervalMs: z.number().optional(),
  inputRequests: z
    .record(
      z.string(),
      z.looseObject({ method: z.string(), params: z.looseObject({ mode: z.string().optional() }) }),
    )
    .optional(),
  result: z.looseObject({}).optional(),
  error: z.looseObject({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
});

/** A task as the client sees it. */
export type HostTask = z.output<typeof task>;

/** A host. */
export interface Host {
  /** Everything sent and received, in order. */
  readonly traffic: readonly string[];
  listTools(): Promise<string[]>;
  /** Calls a tool that becomes a task. With a key, a call that is sent again finds the same task. */
  start(tool: string, args?: Record<string, unknown>, idempotencyKey?: string): Promise<HostTask>;
  get(taskId: string): Promise<HostTask>;
  /** Answers open questions. */
  update(
    taskId: string,
    inputResponses: Record<string, { action: string; content?: unknown }>,
  ): Promise<void>;
  cancel(taskId: string): Promise<void>;
  /** Polls until the task has one of these states. @throws Error after `timeoutMs`. */
  until(taskId: string, states: readonly HostTask['status'][], timeoutMs?: number): Promise<HostTask>;
  close(): Promise<void>;
}

export interface HostOptions {
  readonly mcpUrl: string;
  readonly accessToken: string | (() => Promise<string>);
  readonly name?: string;
  readonly elicitation?: { form?: Record<string, never>; url?: Record<string, never> };
}

/** A recording fetch that sends the access token. */
function recording(options: HostOptions, traffic: string[]) {
  return async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    const token = typeof options.accessToken === 'string' ? options.accessToken : await options.accessToken();
    // The host's own bearer is not recorded: it is the client's credential, not one of Keyturn's.
    traffic.push(
      `> ${init.method ?? 'GET'} ${String(url)} ${JSON.stringify([...headers])} ${bodyText(init.body)}`,
    );
    headers.set('authorization', `Bearer ${token}`);
    const response = await fetch(url, { ...init, headers });
    const head = `< ${response.status} ${JSON.stringify([...response.headers])}`;
    if (response.headers.get('content-type')?.includes('json') !== true) {
      traffic.push(head);
      return response;
    }
    const text = await response.text();
    traffic.push(`${head} ${text}`);
    return new Response(lifted(text), { status: response.status, headers: response.headers });
  };
}

function bodyText(body: RequestInit['body']): string {
  return typeof body === 'string' ? body : '';
}

/** A task result under a name that the client lets pass. */
function lifted(text: string): string {
  const message = JSON.parse(text) as { result?: { resultType?: string } };
  if (message.result?.resultType !== 'task') return text;
  return JSON.stringify({ ...message, result: { ...message.result, resultType: 'complete' } });
}

/** Connects a host. */
export async function openHost(options: HostOptions): Promise<Host> {
  const traffic: string[] = [];
  const client = new Client(
    { name: options.name ?? 'demo-host', version: '1.0.0' },
    {
      capabilities: {
        elicitation: options.elicitation ?? { form: {}, url: {} },
        extensions: { [TASKS]: {} },
      },
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    },
  );
  const transport = new StreamableHTTPClientTransport(new URL(options.mcpUrl), {
    fetch: recording(options, traffic),
  });
  await client.connect(transport);

  // The routing header of a task method is the task's id (tasks extension, "Routing Headers").
  const named = (taskId: string) => ({ headers: { 'mcp-name': taskId } });
  const anything = z.looseObject({});

  const host: Host = {
    traffic,
    async listTools() {
      const { tools } = await client.listTools();
      return tools.map((tool) => tool.name);
    },
    async start(tool, args = {}, idempotencyKey) {
      const meta =
        idempotencyKey === undefined ? {} : { _meta: { 'keyturn/idempotencyKey': idempotencyKey } };
      const result = await client.request({
        method: 'tools/call',
        params: { name: tool, arguments: args, ...meta },
      });
      return task.parse(result);
    },
    async get(taskId) {
      return client.request({ method: 'tasks/get', params: { taskId } }, task, named(taskId));
    },
    async update(taskId, inputResponses) {
      await client.request(
        { method: 'tasks/update', params: { taskId, inputResponses } },
        anything,
        named(taskId),
      );
    },
    async cancel(taskId) {
      await client.request({ method: 'tasks/cancel', params: { taskId } }, anything, named(taskId));
    },
    async until(taskId, states, timeoutMs = 15_000) {
      const giveUpAt = Date.now() + timeoutMs;
      for (;;) {
        const now = await host.get(taskId);
        if (states.includes(now.status)) return now;
        if (Date.now() > giveUpAt)
          throw new Error(`the task stayed ${now.status}: ${now.statusMessage ?? ''}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    close: () => client.close(),
  };
  return host;
}
