/**
 * The MCP endpoint: one path, all revisions. Checks what is common to them in one order, then hands the message to the
 * face of its era. Knows no method and no task.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isRefusal, Refusal } from '../errors.ts';
import type { Caller } from '../engine/caller.ts';
import type { Log } from '../log.ts';
import type { Authenticate, Authenticated } from './bearer.ts';
import { challenge, type ChallengeTerms } from './challenge.ts';
import { eraOf, MODERN_VERSIONS } from './era.ts';
import {
  errorText,
  INVALID_REQUEST,
  isObject,
  PARSE_ERROR,
  readMessage,
  type RpcId,
  type RpcMessage,
  type WireError,
} from './json-rpc.ts';
import { originAllowed, originRules } from './origin.ts';
import { BUG, wireError } from './wire-error.ts';

/** What a face is handed: the message as it was posted, with what the endpoint already knows about it. */
export interface LegacyInput {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly caller: Caller;
  /** The parsed body; undefined on GET and DELETE. */
  readonly body: unknown;
}

/** The face of the revisions that begin with `initialize`. It answers on `reply` itself. */
export interface LegacyFace {
  handle(input: LegacyInput): Promise<void>;
}

/** The face of the revisions that carry everything in each request. It answers on `reply` itself. */
export interface ModernFace {
  handle(input: {
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly caller: Authenticated;
    readonly message: Exclude<RpcMessage, { kind: 'response' }>;
  }): Promise<void>;
  /** Ends streams and held calls, so that the server can close. */
  close(): void;
}

/** What the endpoint is made of. */
export interface EndpointParts {
  /** `/mcp`. */
  readonly path: string;
  readonly publicUrl: string;
  /** Origins of web clients besides our own. */
  readonly allowedOrigins?: readonly string[];
  readonly authenticate: Authenticate;
  readonly challenge: ChallengeTerms;
  readonly modern: ModernFace;
  /** Without one, older revisions are told which are served. */
  readonly legacy?: LegacyFace;
  readonly log: Log;
}

/** Largest body, in bytes. */
export const MOST_BODY_BYTES = 1024 * 1024;

const CALLER = 'mcpCaller';

/** Mounts the endpoint. Parsing and errors of other routes stay as they are. */
export async function mountEndpoint(app: FastifyInstance, parts: EndpointParts): Promise<void> {
  await app.register(async (scope) => endpoint(scope, parts));
}

function endpoint(app: FastifyInstance, parts: EndpointParts): void {
  const { authenticate, modern, log } = parts;
  const legacy = parts.legacy ?? modernOnly;
  const rules = originRules(parts.publicUrl, parts.allowedOrigins);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => done(null, text));
  app.decorateRequest(CALLER, null);

  // Nothing of a body is read before it is clear who sends it.
  app.addHook('onRequest', async (request, reply) => {
    if (!originAllowed(rules, request.headers)) throw new Refusal('origin_forbidden'); //    1  403
    const caller = await authenticate(request); //                                           2  401
    if (caller === undefined) throw new Refusal('token_missing');
    request.setDecorator(CALLER, caller);
    reply.header('cache-control', 'no-store');
  });

  app.post(parts.path, { bodyLimit: MOST_BODY_BYTES }, async (request, reply) => {
    const caller = request.getDecorator<Authenticated>(CALLER);
    if (!isJson(request.headers['content-type'])) return refuse(reply, NOT_JSON); //         3  415, and 413
    const body = parse(request.body);
    if (body === undefined) return refuse(reply, UNPARSABLE); //                             4  −32700
    const message = readMessage(body); //                                                    5  −32600
    if (message.kind === 'malformed') return refuse(reply, malformed(message.message), message.id);
    if (message.kind === 'response' || eraOf(message, request.headers) === 'legacy') {
      await legacy.handle({ request, reply, caller, body });
    } else {
      await modern.handle({ request, reply, caller, message }); //                           6 and on
    }
    return reply;
  });

  // Sessions of older revisions; the modern ones have neither streams to get nor sessions to delete.
  app.route({
    method: ['GET', 'DELETE'],
    url: parts.path,
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      if (isModernVersion(request.headers['mcp-protocol-version'])) return notAllowed(reply);
      const caller = request.getDecorator<Authenticated>(CALLER);
      await legacy.handle({ request, reply, caller, body: undefined });
      return reply;
    },
  });

  app.setErrorHandler((error: unknown, request, reply) => {
    if (isRefusal(error, 'token_missing', 'token_invalid', 'token_scope')) {
      const told = challenge(error, parts.challenge);
      return reply.code(told.status).header('www-authenticate', told.wwwAuthenticate).send(told.body);
    }
    if (isRefusal(error)) {
      log.warn('mcp.refused', { reason: error.reason, error });
      return refuse(reply, wireError(error));
    }
    const code = isObject(error) ? error['code'] : undefined;
    if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refuse(reply, TOO_LARGE);
    const status = isObject(error) ? error['statusCode'] : undefined;
    if (typeof status === 'number' && status >= 400 && status < 500) {
      return refuse(reply, { ...malformed('The request could not be read.'), status });
    }
    log.error('mcp.bug', { method: request.method, error });
    return refuse(reply, BUG);
  });

  app.addHook('preClose', async () => modern.close());
}

const NOT_JSON: WireError = {
  status: 415,
  code: INVALID_REQUEST,
  message: 'Content-Type: must be application/json.',
};

const TOO_LARGE: WireError = {
  status: 413,
  code: INVALID_REQUEST,
  message: `The body must not be larger than ${MOST_BODY_BYTES} bytes.`,
};

const UNPARSABLE: WireError = { status: 400, code: PARSE_ERROR, message: 'The body is not valid JSON.' };

function malformed(message: string): WireError {
  return { status: 400, code: INVALID_REQUEST, message };
}

function isJson(contentType: string | undefined): boolean {
  const essence = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  return essence === 'application/json';
}

function parse(text: unknown): unknown {
  if (typeof text !== 'string') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isModernVersion(header: string | string[] | undefined): boolean {
  return typeof header === 'string' && (MODERN_VERSIONS as readonly string[]).includes(header.trim());
}

function refuse(reply: FastifyReply, error: WireError, id?: RpcId): FastifyReply {
  return reply.code(error.status).header('content-type', 'application/json').send(errorText(id, error));
}

function notAllowed(reply: FastifyReply): FastifyReply {
  return refuse(reply.header('allow', 'POST'), { ...malformed('Only POST is allowed here.'), status: 405 });
}

/** Tells clients of older revisions which ones are served. */
const modernOnly: LegacyFace = {
  async handle({ request, reply, body }) {
    if (request.method !== 'POST') {
      notAllowed(reply);
      return;
    }
    const message = readMessage(body);
    if (message.kind === 'notification') {
      reply.code(202).send();
      return;
    }
    const named = request.headers['mcp-protocol-version'];
    const params = isObject(body) && isObject(body['params']) ? body['params'] : {};
    const requested = named ?? params['protocolVersion'];
    refuse(
      reply,
      {
        status: 400,
        code: -32022,
        message: 'Unsupported protocol version',
        data: {
          supported: [...MODERN_VERSIONS],
          requested: typeof requested === 'string' ? requested : 'unknown',
        },
      },
      message.kind === 'request' ? message.id : undefined,
    );
  },
};
