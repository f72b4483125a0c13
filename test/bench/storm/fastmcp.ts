/**
 * The npm package `fastmcp` in the storm, as its README has it: `auth: new OAuthProvider({ … })`, whose OAuth proxy keeps
 * the provider's tokens and refreshes them when an MCP client refreshes its own at `/oauth/token`; a tool takes the
 * person's access token from `getAuthSession(session)`. Nothing else of it refreshes. All settings are its defaults but
 * for the consent page, which is pressed like any other; over several processes they share its `DiskStore` and keys.
 *
 * Two ways in: the token endpoint itself, and tool calls of the client of `@modelcontextprotocol/sdk`, which refreshes
 * whenever a call is answered 401.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import { FastMCP, getAuthSession, OAuthProvider, requireAuth } from 'fastmcp';
import { DiskStore } from 'fastmcp/auth';
import { openPerson } from '../../../src/sandbox/person.ts';
import { openSaas, type Saas } from '../../../src/sandbox/saas.ts';
import { freePort } from '../../../src/world.ts';
import { refreshes, startContestant, tally, type Contestant, type StormResult } from './result.ts';

/** What a process is told. */
interface Order {
  readonly port: number;
  /** Where people and clients find it. */
  readonly baseUrl: string;
  readonly provider: {
    readonly authorizationEndpoint: string;
    readonly tokenEndpoint: string;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly scopes: string[];
  };
  readonly apiUrl: string;
  /** Where several processes keep the tokens, and with which keys. One process keeps them in memory. */
  readonly shared?: {
    readonly folder: string;
    readonly encryptionKey: string;
    readonly jwtSigningKey: string;
  };
}

async function serve({ port, baseUrl, provider, apiUrl, shared }: Order): Promise<void> {
  const server = new FastMCP({
    name: 'bench',
    version: '1.0.0',
    auth: new OAuthProvider({
      ...provider,
      baseUrl,
      ...(shared === undefined
        ? {}
        : {
            tokenStorage: new DiskStore({ directory: shared.folder }),
            encryptionKey: shared.encryptionKey,
            jwtSigningKey: shared.jwtSigningKey,
          }),
    }),
  });
  server.addTool({
    name: 'read_once',
    description: 'Reads the API once.',
    canAccess: requireAuth,
    async execute(_, { session }) {
      const { accessToken } = getAuthSession(session);
      const answer = await fetch(apiUrl, { headers: { Authorization: `Bearer ${accessToken}` } });
      if (answer.status !== 200) throw new Error(`the API answered ${answer.status}`);
      return 'read';
    },
  });
  await server.start({ transportType: 'httpStream', httpStream: { port, host: '127.0.0.1' } });
  process.send?.('up');
}

/** A provider, the package before it, and where an MCP client is sent back to. */
interface Setting {
  readonly saas: Saas;
  readonly origins: readonly string[];
  readonly redirectUri: string;
  /** A person with a browser of their own agrees to what an authorization URL asks. @returns the code. */
  agree(authorizationUrl: string): Promise<string>;
  close(): Promise<void>;
}

async function openSetting(processes: number, accessTokenSeconds: number): Promise<Setting> {
  const ports = await Promise.all(Array.from({ length: processes }, () => freePort()));
  const origins = ports.map((port) => `http://127.0.0.1:${port}`);
  const [baseUrl = ''] = origins;
  const saas = await openSaas({
    redirectUri: `${baseUrl}/oauth/callback`,
    accessTokenSeconds,
    addresses: ['127.0.0.3', '::1'],
    port: 0,
  });
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-storm-'));
  const shared = {
    folder,
    encryptionKey: randomBytes(32).toString('hex'),
    jwtSigningKey: randomBytes(32).toString('hex'),
  };
  const order: Omit<Order, 'port'> = {
    baseUrl,
    provider: {
      authorizationEndpoint: saas.authorizationEndpoint,
      tokenEndpoint: saas.tokenEndpoint,
      clientId: saas.clientId,
      clientSecret: saas.clientSecret.reveal(),
      scopes: ['records:read', 'profile:read'],
    },
    apiUrl: `${saas.origin}/api/records`,
    ...(processes === 1 ? {} : { shared }),
  };
  const servers: Contestant[] = await Promise.all(
    ports.map((port) => startContestant(import.meta.filename, { ...order, port })),
  );
  const landing = createServer((__, response) => response.end('back at the client'));
  await new Promise<void>((resolve) => {
    landing.listen(0, '127.0.0.1', resolve);
  });
  return {
    saas,
    origins,
    redirectUri: `http://127.0.0.1:${(landing.address() as AddressInfo).port}/back`,
    async agree(authorizationUrl) {
      const page = await openPerson().signInEverywhere(authorizationUrl, { as: 'alice' });
      const code = new URL(page.url).searchParams.get('code');
      if (code === null) throw new Error(`the sign-in ended at ${page.url} (${page.status})`);
      return code;
    },
    async close() {
      await Promise.all(servers.map((server) => server.end()));
      landing.closeAllConnections();
      landing.close();
      await saas.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** So many refreshes at once of one refresh token, at the package's token endpoint, as a client may send them. */
export async function tokenEndpointStorm(calls: number, processes: number): Promise<StormResult> {
  const setting = await openSetting(processes, 300);
  const { saas, origins, redirectUri } = setting;
  const [origin = ''] = origins;
  const post = (url: string, fields: Record<string, string>) =>
    fetch(url, { method: 'POST', body: new URLSearchParams(fields) });

  const registered = await fetch(`${origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirectUri], client_name: 'bench' }),
  });
  const client = (await registered.json()) as { client_id: string; client_secret: string };
  const verifier = randomBytes(32).toString('base64url');
  const authorize = new URL(`${origin}/oauth/authorize`);
  authorize.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'records:read profile:read',
    state: 'bench',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();
  const code = await setting.agree(authorize.href);
  const credentials = { client_id: client.client_id, client_secret: client.client_secret };
  const exchanged = await post(`${origin}/oauth/token`, {
    ...credentials,
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  });
  const { refresh_token: refreshToken = '' } = (await exchanged.json()) as { refresh_token?: string };
  if (refreshToken === '') throw new Error(`fastmcp gave no refresh token (${exchanged.status})`);

  saas.expireAccessTokens();
  const startedAt = performance.now();
  const answers = await Promise.all(
    Array.from({ length: calls }, async (__, call) => {
      const answer = await post(`${origins[call % origins.length]}/oauth/token`, {
        ...credentials,
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
      });
      return (await answer.json()) as { access_token?: string; error?: string };
    }),
  );
  const wallMs = performance.now() - startedAt;
  const failed = answers.filter((answer) => answer.access_token === undefined);
  const result: StormResult = {
    who: `fastmcp, ${processes === 1 ? 'one process' : `${processes} processes`}: ${calls} × POST /oauth/token`,
    calls,
    tokenCalls: refreshes(saas.tokenCalls),
    successes: calls - failed.length,
    errors: tally(failed.map(({ error }) => error ?? 'no error code')),
    signIns: undefined,
    wallMs,
  };
  await setting.close();
  return result;
}

/** So many tool calls at once of one MCP client, after its access token has ended. */
export async function toolCallStorm(calls: number): Promise<StormResult> {
  // The access token really ends: it lives for as long as the provider's.
  const lifeSeconds = 3;
  const setting = await openSetting(1, lifeSeconds);
  const { saas, origins, redirectUri } = setting;
  let information: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let codeVerifier = '';
  let asked: URL[] = [];
  const provider: OAuthClientProvider = {
    redirectUrl: redirectUri,
    clientMetadata: {
      redirect_uris: [redirectUri],
      client_name: 'bench',
      scope: 'records:read profile:read',
    },
    clientInformation: () => information,
    saveClientInformation: (given) => void (information = given),
    tokens: () => tokens,
    saveTokens: (given) => void (tokens = given),
    redirectToAuthorization: (url) => void asked.push(url),
    saveCodeVerifier: (verifier) => void (codeVerifier = verifier),
    codeVerifier: () => codeVerifier,
    invalidateCredentials(scope) {
      if (scope === 'all' || scope === 'tokens') tokens = undefined;
      if (scope === 'all' || scope === 'client') information = undefined;
    },
  };
  const endpoint = new URL(`${origins[0]}/mcp`);
  const open = () => new StreamableHTTPClientTransport(endpoint, { authProvider: provider });
  const stranger = open();
  const client = new Client({ name: 'bench', version: '1.0.0' });
  await client.connect(stranger as never).catch((error: unknown) => {
    if (!(error instanceof UnauthorizedError)) throw error;
  });
  await stranger.finishAuth(await setting.agree(asked[0]?.href ?? ''));
  await client.connect(open() as never);
  const call = () => client.callTool({ name: 'read_once', arguments: {} });
  const first = await call();
  if (first.isError === true) throw new Error('fastmcp: the first call failed');

  await pause((lifeSeconds + 1) * 1_000);
  asked = [];
  const startedAt = performance.now();
  const ends = await Promise.all(
    Array.from({ length: calls }, () =>
      call().then(
        ({ isError }) => (isError === true ? 'tool error' : ''),
        (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : 'no error'),
      ),
    ),
  );
  const wallMs = performance.now() - startedAt;
  const failed = ends.filter((end) => end !== '');
  const result: StormResult = {
    who: `fastmcp, one process: ${calls} × tools/call of the SDK's client`,
    calls,
    tokenCalls: refreshes(saas.tokenCalls),
    successes: calls - failed.length,
    errors: tally(failed),
    signIns: asked.length,
    wallMs,
  };
  await client.close().catch(() => undefined);
  await setting.close();
  return result;
}

if (process.argv[2] === '--serve') {
  process.once('message', (order) => void serve(order as Order));
  // A process never outlives the one that started it.
  process.once('disconnect', () => process.exit());
  if (!process.connected) process.exit();
}
