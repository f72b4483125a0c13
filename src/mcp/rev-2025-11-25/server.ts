/**
 * The SDK's low-level `Server` for one session, with every handler that touches a task overridden: the SDK's own task
 * store knows sessions, not owners, and forgets answers at a restart. Errors leave as plain code, message and data.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CallToolRequestSchema,
  CancelTaskRequestSchema,
  GetTaskPayloadRequestSchema,
  GetTaskRequestSchema,
  ListTasksRequestSchema,
  ListToolsRequestSchema,
  type JSONRPCMessage,
  type RequestId,
  type ServerNotification,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { callTool } from './call-tool.ts';
import type { Call, Exchange, Message } from './call.ts';
import type { Client } from './client.ts';
import { listTools } from './list-tools.ts';
import type { LegacyParts } from './parts.ts';
import { REVISIONS } from './revisions.ts';
import type { SessionState } from './session-state.ts';
import { cancelTask, getTask, listTasks } from './tasks-methods.ts';
import { tasksResult } from './tasks-result.ts';
import { toRpcError } from './rpc-error.ts';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** What a session's server is connected to. */
export interface Connection {
  readonly client: Client;
  readonly state: SessionState;
  readonly transport: Transport;
  /** The exchange that a request came in by. */
  exchangeOf(extra: Extra): Exchange;
  /** Ends the stream of a request that its client cancelled: the SDK sends no answer for it. */
  endStream(requestId: RequestId, exchange: Exchange): void;
}

/** Sends one of our messages, on the stream of a request if one is given. */
export async function sendMessage(
  transport: Transport,
  message: Message,
  relatedRequestId?: RequestId,
): Promise<void> {
  const wire = { jsonrpc: '2.0', ...message } as JSONRPCMessage;
  // A stream that is gone takes its messages with it; what matters is asked again on the next one.
  await transport
    .send(wire, relatedRequestId === undefined ? {} : { relatedRequestId })
    .catch(() => undefined);
}

/** Builds a server for a session. It is not connected yet. */
export function buildServer(parts: LegacyParts, connection: Connection): Server {
  const { client, state, transport } = connection;
  const features = REVISIONS[client.revision];
  const server = new Server(
    { ...parts.serverInfo },
    {
      capabilities: {
        tools: {},
        ...(features.tasks ? { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } : {}),
      },
      ...(parts.instructions === undefined ? {} : { instructions: parts.instructions }),
    },
  );
  server.onerror = (error) => parts.log.debug('mcp.transport', { error });

  async function answer(
    extra: Extra,
    work: (call: Call) => Promise<Record<string, unknown>>,
  ): Promise<Record<string, unknown>> {
    const exchange = connection.exchangeOf(extra);
    const call: Call = {
      caller: exchange.caller,
      idempotencyKey: exchange.idempotencyKey,
      whenDelivered: (note) => exchange.whenDelivered(note),
      client,
      signal: AbortSignal.any([extra.signal, exchange.gone]),
      meta: extra._meta ?? {},
      send: (message) => sendMessage(transport, message, extra.requestId),
    };
    try {
      return await work(call);
    } catch (error) {
      throw toRpcError(error, parts.log);
    } finally {
      if (extra.signal.aborted) connection.endStream(extra.requestId, exchange);
    }
  }

  server.setRequestHandler(ListToolsRequestSchema, () => listTools(parts, client));
  server.setRequestHandler(CallToolRequestSchema, (request, extra) =>
    answer(extra, (call) => {
      const { name, arguments: args, task } = request.params;
      return callTool(parts, state, call, { name, arguments: args, task });
    }),
  );
  if (features.tasks) {
    server.setRequestHandler(GetTaskRequestSchema, (request, extra) =>
      answer(extra, (call) => getTask(parts, state, call, request.params.taskId)),
    );
    server.setRequestHandler(GetTaskPayloadRequestSchema, (request, extra) =>
      answer(extra, (call) => tasksResult(parts, state, call, request.params.taskId)),
    );
    server.setRequestHandler(ListTasksRequestSchema, (request, extra) =>
      answer(extra, (call) => listTasks(parts, call, request.params?.cursor)),
    );
    server.setRequestHandler(CancelTaskRequestSchema, (request, extra) =>
      answer(extra, (call) => cancelTask(parts, call, request.params.taskId)),
    );
  }
  return server;
}
