/**
 * The MCP endpoint for revisions that begin with `initialize`: 2025-11-25, 2025-06-18, 2025-03-26. Origin, access
 * token, size and JSON are checked before; here the session is found, and the SDK speaks in it. A session is a
 * convenience of the transport: no task depends on it, and no right comes from it (D13).
 */
import type { FastifyReply } from 'fastify';
import type { Caller } from '../../engine/caller.ts';
import { isRefusal } from '../../errors.ts';
import type { LegacyFace, LegacyInput } from '../endpoint.ts';
import { isResponse, takeAnswer, type Response as RpcResponse } from './answers.ts';
import { readClient } from './client.ts';
import { openDeliveries, type Deliveries } from './deliveries.ts';
import { headerOf, openExchange, sendResponse, webRequest } from './exchange.ts';
import { legacyParts, type LegacyOptions, type LegacyParts } from './parts.ts';
import { isRevision, REVISIONS } from './revisions.ts';
import type { Session } from './session.ts';
import { openSessions, type Sessions } from './sessions.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, isObject } from '../json-rpc.ts';

/** What the SDK's own transport uses for faults of HTTP. */
const TRANSPORT_FAULT = -32000;
const SESSION_UNKNOWN = -32001;

/** The face of the revisions with a handshake. `handle` resolves when the answer has begun. */
export interface HandshakeFace extends LegacyFace {
  /** Ends every session and stream. Tasks go on. */
  close(): Promise<void>;
}

/** What the face keeps between requests. */
interface Kept {
  readonly sessions: Sessions;
  readonly deliveries: Deliveries;
}

/** Opens the face. @throws Refusal `configuration_invalid`. */
export function openLegacyFace(options: LegacyOptions): HandshakeFace {
  const parts = legacyParts(options);
  const kept: Kept = { sessions: openSessions(parts), deliveries: openDeliveries(parts.settings.lingerMs) };

  return {
    async handle(input) {
      try {
        await route(parts, kept, input);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        parts.log.error('mcp.refused', { error });
        void input.reply.header('retry-after', '1');
        fault(input.reply, 503, INTERNAL_ERROR, error.message);
      }
    },
    async close() {
      await kept.sessions.close();
      await kept.deliveries.flush();
    },
  };
}

async function route(parts: LegacyParts, kept: Kept, input: LegacyInput): Promise<void> {
  const { sessions } = kept;
  const { request, reply, caller, body } = input;
  const version = headerOf(request, 'mcp-protocol-version');
  if (version !== undefined && !isRevision(version)) {
    const supported = Object.keys(REVISIONS).join(', ');
    return fault(reply, 400, TRANSPORT_FAULT, `Unsupported protocol version (supported: ${supported})`);
  }
  if (request.method === 'POST' && isInitialize(body)) {
    // Clients come back with the id of a session that is over and introduce themselves again: a new session it is.
    const client = readClient(body.params);
    const session = await sessions.start(caller, client);
    // A revision that is not spoken here is answered with the one that is.
    const params = { ...(body.params as object), protocolVersion: client.revision };
    return await pass(kept, session, input, { ...body, params });
  }
  const id = headerOf(request, 'mcp-session-id');
  if (id === undefined) return fault(reply, 400, TRANSPORT_FAULT, 'Mcp-Session-Id header is required');
  const session = await sessions.find(caller, id);
  if (session === undefined) return fault(reply, 404, SESSION_UNKNOWN, 'Session not found');
  if (request.method === 'DELETE') {
    sessions.end(session);
    reply.code(200);
    void reply.send();
    return undefined;
  }
  if (request.method !== 'POST') return await pass(kept, session, input, undefined);
  return await post(parts, kept, session, input);
}

/** Takes the answers out of a POST; the SDK gets the rest. */
async function post(parts: LegacyParts, kept: Kept, session: Session, input: LegacyInput): Promise<void> {
  const { reply, body } = input;
  if (Array.isArray(body) && (!REVISIONS[session.client.revision].batches || body.length === 0)) {
    return fault(reply, 400, INVALID_REQUEST, 'A batch is not accepted');
  }
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  const responses = messages.filter(isResponse);
  if (responses.length > 0 && !(await takeAll(parts, session, input.caller, responses))) {
    return fault(reply, 400, INVALID_PARAMS, 'The response answers no open request');
  }
  const rest = messages.filter((message) => !isResponse(message));
  if (rest.length === 0) {
    reply.code(202);
    void reply.send();
    return undefined;
  }
  return await pass(kept, session, input, Array.isArray(body) ? rest : body);
}

async function takeAll(
  parts: LegacyParts,
  session: Session,
  caller: Caller,
  responses: readonly RpcResponse[],
): Promise<boolean> {
  let known = true;
  for (const response of responses) {
    const taken = await takeAnswer(parts, caller, session.state.first, response);
    known &&= taken === 'taken';
  }
  return known;
}

async function pass(
  { sessions, deliveries }: Kept,
  session: Session,
  input: LegacyInput,
  body: unknown,
): Promise<void> {
  const { request, reply } = input;
  const leave = sessions.enter(session);
  if (leave === undefined) {
    void reply.header('retry-after', '1');
    return fault(reply, 429, TRANSPORT_FAULT, 'Too many open requests in this session');
  }
  reply.raw.once('close', leave);
  const exchange = openExchange(input, deliveries, Array.isArray(body));
  sendResponse(reply, await session.answer(webRequest(request), body, exchange));
  return undefined;
}

function isInitialize(body: unknown): body is { params: unknown } {
  return isObject(body) && body['method'] === 'initialize';
}

/** A JSON-RPC error without an id, as an HTTP error. */
function fault(reply: FastifyReply, status: number, code: number, message: string): void {
  reply.code(status);
  void reply.send({ jsonrpc: '2.0', id: null, error: { code, message } });
}
