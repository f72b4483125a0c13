/**
 * An MCP client of revision 2026-07-28 that drives tasks, streams and multi round-trips. It stands on
 * `@modelcontextprotocol/client`, which knows nothing of the tasks extension yet: a handle that answers a call is lifted
 * into `_meta` on its way in, since the library would refuse it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  Client,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { z } from 'zod';

/** A task as the server tells it. */
export interface WireTask {
  readonly taskId: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number | null;
  readonly pollIntervalMs?: number;
  readonly inputRequests?: Readonly<Record<string, WireInputRequest>>;
  readonly result?: WireToolResult;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A question of a task. */
export interface WireInputRequest {
  readonly method: string;
  readonly params: { readonly mode?: string; readonly message: string; readonly url?: string };
}

/** A tool's result. */
export interface WireToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

/** What a client answers to a question. */
export interface WireAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: Readonly<Record<string, unknown>>;
}

/** What a call came to. */
export type Called =
  | { readonly kind: 'task'; readonly task: WireTask }
  | { readonly kind: 'result'; readonly result: WireToolResult };

export interface McpClientOptions {
  readonly url: string;
  /** Bearer of every request; asked for each one. */
  readonly token: () => string | Promise<string>;
  /** How the client names itself. */
  readonly name?: string;
  /** Capabilities declared on every request; tasks and both kinds of questions by default. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** Answers questions of multi round-trips, where tasks are not declared. */
  readonly onElicit?: (params: WireInputRequest['params']) => WireAnswer | Promise<WireAnswer>;
  /** Sees every message that arrives, before anything else does. */
  readonly onMessage?: (message: JSONRPCMessage) => void;
}

export interface McpClient {
  /** The library's client, for everything else. */
  readonly client: Client;
  call(tool: string, args?: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<Called>;
  get(taskId: string): Promise<WireTask>;
  update(taskId: string, inputResponses: Readonly<Record<string, WireAnswer>>): Promise<void>;
  cancel(taskId: string): Promise<void>;
  /** Polls at the pace that the server asks for until a task has ended, and answers its questions once each. */
  follow(taskId: string, options?: FollowOptions): Promise<WireTask>;
  /** Hears of every change of tasks, and of tools; `close` ends the stream. */
  listen(
    filter: { readonly taskIds?: readonly string[]; readonly toolsListChanged?: boolean },
    on: { readonly task?: (task: WireTask) => void; readonly tools?: () => void },
  ): Promise<{ close(): Promise<void> }>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly meta?: Readonly<Record<string, unknown>>;
}

export interface FollowOptions {
  /** Answers a question; without one, questions are left open. */
  readonly onInput?: (key: string, request: WireInputRequest) => WireAnswer | Promise<WireAnswer>;
  readonly onTask?: (task: WireTask) => void;
  /** Longest pause between two polls, in milliseconds; the server's word by default. */
  readonly mostPauseMs?: number;
  readonly signal?: AbortSignal;
}

const TASKS = 'io.modelcontextprotocol/tasks';
const HANDLE = 'keyturn/task';
const REVISION = '2026-07-28';

/** Lifts a task handle out of an answer to `tools/call`. */
function liftHandle(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message)) return message;
  const { resultType, ...task } = message.result as Record<string, unknown>;
  if (resultType !== 'task') return message;
  const { _meta, content: _none, ...fields } = task;
  return {
    ...message,
    result: {
      resultType: 'complete',
      content: [],
      _meta: { ...(_meta as object | undefined), [HANDLE]: fields },
    },
  };
}

/** Puts the lift before whoever listens to the transport. */
function lifting(transport: Transport, onMessage: McpClientOptions['onMessage']): Transport {
  let listener: Transport['onmessage'];
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => listener,
    set(next: Transport['onmessage']) {
      listener =
        next === undefined
          ? undefined
          : (message, extra) => {
              onMessage?.(message);
              next(liftHandle(message), extra);
            };
    },
  });
  return transport;
}

/** Opens a client. @throws whatever the connection throws. */
export async function openMcpClient(options: McpClientOptions): Promise<McpClient> {
  const capabilities = options.capabilities ?? {
    extensions: { [TASKS]: {} },
    elicitation: { form: {}, url: {} },
  };
  const client = new Client(
    { name: options.name ?? 'keyturn-client', version: '0.1.0' },
    {
      capabilities,
      versionNegotiation: { mode: { pin: REVISION } },
    },
  );
  const { onElicit } = options;
  if (onElicit !== undefined && 'elicitation' in capabilities) {
    client.setRequestHandler('elicitation/create', async (request) => {
      const answer = await onElicit(request.params as WireInputRequest['params']);
      return answer as { action: 'accept' };
    });
  }
  const transport = new StreamableHTTPClientTransport(new URL(options.url), {
    authProvider: { token: async () => options.token() },
  });
  await client.connect(lifting(transport, options.onMessage));

  const anything = z.looseObject({});
  async function ask(method: string, params: Record<string, unknown>): Promise<z.output<typeof anything>> {
    return client.request({ method, params }, anything);
  }

  async function get(taskId: string): Promise<WireTask> {
    return (await ask('tasks/get', { taskId })) as unknown as WireTask;
  }

  async function update(taskId: string, inputResponses: Readonly<Record<string, WireAnswer>>): Promise<void> {
    await ask('tasks/update', { taskId, inputResponses });
  }

  return {
    client,
    get,
    update,

    async call(tool, args = {}, { signal, timeoutMs, meta } = {}) {
      const result = await client.callTool(
        { name: tool, arguments: { ...args }, ...(meta === undefined ? {} : { _meta: { ...meta } }) },
        {
          ...(signal === undefined ? {} : { signal }),
          ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
        },
      );
      const task = result._meta?.[HANDLE] as WireTask | undefined;
      return task === undefined
        ? { kind: 'result', result: result as unknown as WireToolResult }
        : { kind: 'task', task };
    },

    async cancel(taskId) {
      await ask('tasks/cancel', { taskId });
    },

    async follow(taskId, { onInput, onTask, mostPauseMs, signal } = {}) {
      const answered = new Set<string>();
      for (;;) {
        signal?.throwIfAborted();
        const task = await get(taskId);
        onTask?.(task);
        if (task.status !== 'working' && task.status !== 'input_required') return task;
        for (const [key, request] of Object.entries(task.inputRequests ?? {})) {
          if (onInput === undefined || answered.has(key)) continue;
          answered.add(key);
          await update(taskId, { [key]: await onInput(key, request) });
        }
        const pauseMs = Math.min(task.pollIntervalMs ?? 1_000, mostPauseMs ?? Infinity);
        await pause(pauseMs, undefined, signal === undefined ? {} : { signal });
      }
    },

    async listen(filter, on) {
      const params = z.looseObject({});
      client.setNotificationHandler('notifications/tasks', { params }, (task) => {
        on.task?.(task as unknown as WireTask);
      });
      client.setNotificationHandler('notifications/tools/list_changed', () => on.tools?.());
      // The library's own type of a filter has no tasks yet; it sends what it is given.
      const subscription = await client.listen({ ...filter } as Parameters<Client['listen']>[0]);
      return { close: () => subscription.close() };
    },

    close: () => client.close(),
  };
}
