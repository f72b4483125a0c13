/**
 * What `@modelcontextprotocol/server` answers for us: `server/discover`, `tools/list` and `tools/call`, one server object
 * per request, behind our own checks. It holds requests and results against the schemas of the revision and stamps what
 * every result carries. The methods of the tasks extension and `subscriptions/listen` never come here.
 */
import { McpServer, PerRequestHTTPServerTransport } from '@modelcontextprotocol/server';
import type { Catalogue } from '../catalogue.ts';
import type { JsonObject, RpcId, WireError } from '../json-rpc.ts';
import { INVALID_PARAMS } from '../json-rpc.ts';
import type { CallAnswer } from './call.ts';
import { TASKS_EXTENSION, type Envelope } from './envelope.ts';

/** Self-description of this server. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  readonly instructions?: string;
}

/** Methods that are answered here. */
export const SERVER_METHODS: readonly string[] = ['server/discover', 'tools/list', 'tools/call'];

const VERSION = '2026-07-28';
/** How long lists may be kept, in milliseconds. They belong to whoever may call. */
const CACHE_HINT = { ttlMs: 300_000, cacheScope: 'private' } as const;

/** An answer as HTTP. */
export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Answers one request. `call` is asked for the answer of `tools/call`. */
export async function serveRequest(options: {
  readonly info: ServerInfo;
  readonly catalogue: Catalogue;
  readonly request: { readonly id: RpcId; readonly method: string; readonly params: JsonObject };
  readonly envelope: Envelope;
  readonly call: () => Promise<CallAnswer>;
}): Promise<HttpAnswer> {
  const { info, catalogue, request } = options;
  const { instructions, ...serverInfo } = info;
  const { server } = new McpServer(serverInfo, {
    capabilities: { tools: { listChanged: true }, extensions: { [TASKS_EXTENSION]: {} } },
    supportedProtocolVersions: [VERSION],
    cacheHints: { 'server/discover': CACHE_HINT, 'tools/list': CACHE_HINT },
    ...(instructions === undefined ? {} : { instructions }),
  });
  let failed: WireError | undefined;
  server.setRequestHandler('tools/list', ({ params }) => {
    // Everything fits on one page, so no cursor was ever given out.
    if (params?.cursor !== undefined)
      throw rpcError(INVALID_PARAMS, 'params.cursor: is not one of this server');
    return { tools: catalogue.all().map(({ listing }) => ({ ...listing })) };
  });
  server.setRequestHandler('tools/call', async () => {
    const answer = await options.call();
    if (answer.kind === 'result') return answer.result as never;
    failed = answer.error;
    throw rpcError(failed.code, failed.message, failed.data);
  });
  const transport = new PerRequestHTTPServerTransport({
    classification: { era: 'modern', revision: VERSION },
    responseMode: 'json',
  });
  await server.connect(transport);
  const response = await transport.handleMessage({
    jsonrpc: '2.0',
    id: request.id,
    method: request.method,
    params: { ...request.params, _meta: plainMeta(options.envelope) },
  });
  return { status: failed?.status ?? response.status, text: await response.text() };
}

/** What we have read of a request's `_meta`: the library would refuse optional fields of an odd type, or drop them. */
function plainMeta({ version, declared: { modes, tasks } }: Envelope): JsonObject {
  const elicitation = { ...(modes.form ? { form: {} } : {}), ...(modes.url ? { url: {} } : {}) };
  return {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {
      ...(modes.form || modes.url ? { elicitation } : {}),
      ...(tasks ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
    },
  };
}

/** Plain, since the library's own error classes prefix or restrict what they carry. */
function rpcError(code: number, message: string, data?: JsonObject): Error {
  return Object.assign(new Error(message), { code, ...(data === undefined ? {} : { data }) });
}
