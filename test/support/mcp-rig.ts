/**
 * An engine with the MCP endpoint in front of it and nothing else: no pages, no providers. Requests may be injected or
 * sent over sockets. Callers are named by the bearer itself (`alice`, `alice@cursor` for another client of hers), unless
 * a test brings its own check.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify';
import { ownerOf } from '../../src/elicitation/owner.ts';
import type { AnyTool } from '../../src/engine/define.ts';
import { openEngine, type Engine } from '../../src/engine/engine.ts';
import { noMeter } from '../../src/engine/meter.ts';
import { providerRegistry } from '../../src/engine/providers.ts';
import { DEFAULT_SETTINGS, type EngineSettings } from '../../src/engine/settings.ts';
import type { TaskSettings } from '../../src/engine/tasks.ts';
import { openLog, type Log } from '../../src/log.ts';
import type { Authenticate } from '../../src/mcp/bearer.ts';
import { openCatalogue, type Catalogue } from '../../src/mcp/catalogue.ts';
import { encodeHeaderValue } from '../../src/mcp/header-value.ts';
import { mountMcp, type McpParts } from '../../src/mcp/mount.ts';
import { openEgress } from '../../src/provider/egress.ts';
import { SecretsInUse } from '../../src/secrets-in-use.ts';
import { openLedger, type Ledger } from '../../src/store/ledger.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { generateKey, openKeyring, type Keyring } from '../../src/vault/keyring.ts';
import { parseKeyText } from '../../src/vault/key-text.ts';
import { openVault } from '../../src/vault/vault.ts';

export const ISSUER = 'https://issuer.example';

export interface RigOptions {
  readonly tools: readonly AnyTool[];
  readonly authenticate?: Authenticate;
  readonly mcp?: Partial<McpParts>;
  readonly engine?: Partial<EngineSettings>;
  readonly tasks?: Partial<TaskSettings>;
  /** Stays as it is at the end; a temporary one by default. */
  readonly folder?: string;
  readonly keyring?: Keyring;
  readonly publicUrl?: string;
  /** The end waits for requests that are being answered, as in production. */
  readonly waitsForRequests?: boolean;
}

export interface Rig {
  readonly app: FastifyInstance;
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly catalogue: Catalogue;
  readonly secrets: SecretsInUse;
  readonly keyring: Keyring;
  /** Log lines, parsed. */
  readonly lines: { event: string; [name: string]: unknown }[];
  /** Listens on a free port and says where the endpoint is. */
  listen(): Promise<string>;
  close(): Promise<void>;
}

/** The caller that a bearer of the rig names. */
export function callerNamed(name: string): { owner: string; clientId: string; scopes: string[] } {
  const [subject = '', clientId = 'test-client'] = name.split('@');
  return { owner: ownerOf({ issuer: ISSUER, subject }), clientId, scopes: ['mcp:tools'] };
}

export const namedBearer: Authenticate = ({ headers }) => {
  const name = /^Bearer (.+)$/.exec(String(headers['authorization'] ?? ''))?.[1];
  return name === undefined ? undefined : callerNamed(name);
};

export async function openRig(options: RigOptions): Promise<Rig> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'keyturn-mcp-'));
  const publicUrl = options.publicUrl ?? 'http://localhost:3000';
  const secrets = new SecretsInUse();
  const lines: Rig['lines'] = [];
  const log: Log = openLog({
    level: 'info',
    stream: { write: (line) => void lines.push(JSON.parse(line) as Rig['lines'][number]) },
  });
  const keyring = options.keyring ?? (await openKeyring(parseKeyText(generateKey().entry.reveal(), 'test')));
  const ledger = openLedger(await openSqlite({ file: join(folder, 'keyturn.sqlite') }));
  const egress = openEgress({ allowPrivate: [], timeoutMs: 5_000, maxBodyBytes: 1_000_000 });
  const wallMs = (): number => Date.now();
  const nowMs = (): number => performance.now();
  const catalogue = openCatalogue(options.tools);
  const engine = openEngine({
    ledger,
    vault: openVault({ keyring, table: ledger.vaultTable }),
    keyring,
    providers: providerRegistry(new Map()),
    egress,
    tools: new Map(options.tools.map((tool) => [tool.name, tool])),
    secrets,
    settings: { ...DEFAULT_SETTINGS, holder: 'rig', sweepEveryMs: 100, graceMs: 200, ...options.engine },
    taskSettings: {
      openPerOwner: 500,
      queueDepth: 5_000,
      defaultTtlMs: 3_600_000,
      maxTtlMs: 86_400_000,
      ...options.tasks,
    },
    log,
    meter: noMeter,
    publicUrl,
    serverName: 'Rig',
    deliversOtherwise: () => false,
    wallMs,
    nowMs,
  });
  // A connection that a client has opened and not used yet would hold up the end for a minute.
  const app = Fastify({ forceCloseConnections: options.waitsForRequests === true ? 'idle' : true });
  await mountMcp(app, {
    resource: {
      publicUrl,
      path: '/mcp',
      authorizationServers: [ISSUER],
      scopes: ['mcp:tools'],
      name: 'Rig',
    },
    info: { name: 'rig', version: '1.2.3', instructions: 'Call greet.' },
    authenticate: options.authenticate ?? namedBearer,
    tasks: engine.tasks,
    catalogue,
    keyring,
    scrub: (text) => secrets.scrubText(text),
    log,
    wallMs,
    nowMs,
    ...options.mcp,
  });
  engine.start();
  return {
    app,
    engine,
    ledger,
    catalogue,
    secrets,
    keyring,
    lines,
    async listen() {
      await app.listen({ host: '127.0.0.1', port: 0 });
      return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/mcp`;
    },
    async close() {
      await app.close();
      await engine.stop();
      await egress.close();
      await ledger.close();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const TASKS = 'io.modelcontextprotocol/tasks';
export const VERSION = '2026-07-28';

/** What clients of this revision can declare. */
export const CAPABLE = { extensions: { [TASKS]: {} }, elicitation: { form: {}, url: {} } };

export interface RpcCall {
  readonly method: string;
  readonly params?: Record<string, unknown>;
  readonly id?: string | number;
  readonly capabilities?: unknown;
  readonly meta?: Record<string, unknown>;
  /** Laid over the headers; undefined leaves one out. */
  readonly headers?: Record<string, string | undefined>;
  readonly as?: string;
  readonly version?: string;
}

/** Headers and body of a request as a client of this revision sends it. */
export function modernRequest(call: RpcCall): { headers: Record<string, string>; body: string } {
  const { params = {}, version = VERSION } = call;
  const name = params['name'] ?? params['taskId'];
  const headers: Record<string, string | undefined> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${call.as ?? 'alice'}`,
    'mcp-protocol-version': version,
    'mcp-method': call.method,
    'mcp-name': typeof name === 'string' ? encodeHeaderValue(name) : undefined,
    ...call.headers,
  };
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: call.id ?? 1,
    method: call.method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': version,
        'io.modelcontextprotocol/clientCapabilities': call.capabilities ?? CAPABLE,
        'io.modelcontextprotocol/clientInfo': { name: 'rig-client', version: '0' },
        ...call.meta,
      },
    },
  });
  return {
    headers: Object.fromEntries(
      Object.entries(headers).filter((one): one is [string, string] => one[1] !== undefined),
    ),
    body,
  };
}

export interface RpcAnswer {
  readonly status: number;
  readonly headers: LightMyRequestResponse['headers'];
  readonly body: {
    jsonrpc: '2.0';
    id?: string | number;
    result?: any;
    error?: { code: number; message: string; data?: any };
  };
}

/** Sends a request without a socket. */
export async function rpc(rig: Rig, call: RpcCall): Promise<RpcAnswer> {
  const { headers, body } = modernRequest(call);
  const answer = await rig.app.inject({
    method: 'POST',
    url: '/mcp',
    headers: { host: 'localhost:3000', ...headers },
    payload: body,
  });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}
