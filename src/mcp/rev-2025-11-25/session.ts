/**
 * One session over HTTP: a server and a transport of the SDK, closed over one owner and one client. It is rebuilt from
 * its id wherever it is needed, by saying the client's `initialize` again.
 */
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Caller } from '../../engine/caller.ts';
import type { Exchange } from './call.ts';
import { introduction, type Client } from './client.ts';
import { openFirstQuestions } from './first-questions.ts';
import { openFollowed } from './followed.ts';
import { openGiven } from './given.ts';
import { ignoreTask } from './ignore-task.ts';
import type { LegacyParts } from './parts.ts';
import { buildServer, sendMessage } from './server.ts';
import type { SessionState } from './session-state.ts';
import { INTERNAL_ERROR } from '../json-rpc.ts';

/** A session in memory. */
export interface Session {
  readonly id: string;
  readonly owner: string;
  readonly client: Client;
  readonly state: SessionState;
  /** Lets the SDK answer an HTTP request. `body` is the parsed JSON of a POST. */
  answer(request: Request, body: unknown, exchange: Exchange): Promise<Response>;
  close(): Promise<void>;
}

/** An exchange travels through the SDK in the place of token facts. The token itself never does. */
function carry(exchange: Exchange): AuthInfo {
  const { clientId, scopes } = exchange.caller;
  return { token: '', clientId, scopes: [...scopes], extra: { exchange } };
}

/** Builds a session. It has heard no `initialize` yet. */
export async function buildSession(
  parts: LegacyParts,
  caller: Caller,
  client: Client,
  id: string,
): Promise<Session> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => id,
    keepAliveMs: parts.settings.keepAliveMs,
  });
  let streams = 0;
  const given = openGiven();
  const followed = openFollowed(parts, {
    caller,
    client,
    given,
    listening: () => streams > 0,
    send: (message) => sendMessage(transport, message),
  });
  const state: SessionState = { given, followed, first: openFirstQuestions() };
  const server = buildServer(parts, {
    client,
    state,
    transport,
    exchangeOf: (extra) => extra.authInfo?.extra?.['exchange'] as Exchange,
    endStream(requestId, exchange) {
      const nothing: JSONRPCMessage = {
        jsonrpc: '2.0',
        id: requestId,
        error: { code: INTERNAL_ERROR, message: 'Cancelled by the client' },
      };
      // Without its stream the answer goes nowhere; it makes the transport forget the request.
      if (!exchange.shared) transport.closeSSEStream(requestId);
      transport.send(nothing).catch(() => undefined);
    },
  });
  await server.connect(transport);

  return {
    id,
    owner: caller.owner,
    client,
    state,
    async answer(request, body, exchange) {
      const options = {
        authInfo: carry(exchange),
        ...(body === undefined ? {} : { parsedBody: ignoreTask(client, body) }),
      };
      const response = await transport.handleRequest(request, options);
      if (request.method === 'GET' && response.ok) {
        streams += 1;
        const gone = (): void => {
          streams -= 1;
          if (streams === 0) followed.deaf();
        };
        exchange.gone.addEventListener('abort', gone, { once: true });
      }
      return response;
    },
    async close() {
      followed.end();
      await server.close();
    },
  };
}

/** Headers that the transport wants to see on a POST. */
const POST_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Builds a session that has heard its `initialize`, from what its id says about the client. */
export async function rebuildSession(
  parts: LegacyParts,
  caller: Caller,
  client: Client,
  id: string,
): Promise<Session> {
  const session = await buildSession(parts, caller, client, id);
  const request = new Request('http://localhost/', { method: 'POST', headers: POST_HEADERS });
  const body = { jsonrpc: '2.0', id: 'introduction', method: 'initialize', params: introduction(client) };
  const nobody: Exchange = {
    caller,
    gone: new AbortController().signal,
    idempotencyKey: undefined,
    shared: false,
    whenDelivered() {},
  };
  const response = await session.answer(request, body, nobody);
  // Reading it to its end is what lets the transport forget the request.
  await response.text();
  if (!response.ok) throw new Error('a session could not be built again');
  return session;
}
