/**
 * What the sandbox's two authorization servers have in common: a real oidc-provider on a loopback address
 * of its own, with keys made at start-up, state in memory, pages without script, and nothing left at a
 * default that the library would warn about. Each server adds what makes it itself.
 */
import { generateKeyPairSync, randomBytes, type JsonWebKey } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { interactionPolicy, Provider, type Context } from 'oidc-provider';
import type { Account } from './accounts.ts';
import { interact, INTERACTIONS } from './interactions.ts';
import { listenOnFirst } from './loopback.ts';
import { memoryState, type MemoryState } from './memory-state.ts';
import { troublePage, type Brand } from './pages.ts';

const DAY_SECONDS = 24 * 3600;

/** Private key that a server signs with. */
export type SigningKey = JsonWebKey & { readonly kid: string; readonly alg: 'ES256'; readonly use: 'sig' };

export interface AuthorizationServerOptions {
  readonly addresses: readonly string[];
  /** 0 for any free port. */
  readonly port: number;
  readonly brand: Brand;
  readonly accounts: readonly Account[];
  /** Lifetime of access tokens. */
  readonly accessTokenSeconds: number;
  /**
   * Configuration of the library that makes this server itself; laid over the common one, `features`
   * merged.
   */
  readonly configuration: (own: { readonly issuer: string; readonly provider: () => Provider }) => {
    readonly features?: Readonly<Record<string, unknown>>;
    readonly [name: string]: unknown;
  };
  /** Changes a request's URL before anything reads it. */
  readonly rewrite?: (url: URL) => void;
  /** Requests that are this server's own business; undefined where the library answers. */
  readonly route?: (
    path: string,
  ) => ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined;
}

export interface AuthorizationServer {
  /** Issuer identifier, which is also the origin. */
  readonly issuer: string;
  readonly provider: Provider;
  readonly state: MemoryState;
  readonly signingKey: SigningKey;
  close(): Promise<void>;
}

export async function openAuthorizationServer(
  options: AuthorizationServerOptions,
): Promise<AuthorizationServer> {
  const { brand, accounts } = options;
  const listening = await listenOnFirst(options.addresses, options.port);
  const issuer = listening.origin;
  const state = memoryState(() => Date.now());
  const signingKey = newSigningKey();
  const { features, ...own } = options.configuration({ issuer, provider: () => provider });
  const common = commonConfiguration(options, state, signingKey);
  const provider: Provider = new Provider(issuer, {
    ...common,
    ...own,
    features: { ...common.features, ...features },
  });
  const answer = provider.callback();
  const { host } = new URL(issuer);
  listening.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // A page elsewhere whose name was made to point here has another host.
    if (request.headers.host !== host) {
      response.writeHead(421).end();
      return;
    }
    const url = new URL(request.url ?? '/', issuer);
    options.rewrite?.(url);
    request.url = `${url.pathname}${url.search}`;
    const route =
      options.route?.(url.pathname) ??
      (url.pathname.startsWith(INTERACTIONS)
        ? (from: IncomingMessage, to: ServerResponse) => interact({ provider, brand, accounts }, from, to)
        : undefined);
    if (route === undefined) answer(request, response);
    else void route(request, response).catch(() => broken(response));
  });
  return { issuer, provider, state, signingKey, close: () => listening.close() };
}

function broken(response: ServerResponse): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500).end();
}

function newSigningKey(): SigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    ...privateKey.export({ format: 'jwk' }),
    kid: randomBytes(6).toString('hex'),
    alg: 'ES256',
    use: 'sig',
  };
}

function commonConfiguration(
  { brand, accounts, accessTokenSeconds }: AuthorizationServerOptions,
  state: MemoryState,
  signingKey: SigningKey,
) {
  const policy = interactionPolicy.base();
  policy.add(new interactionPolicy.Prompt({ name: 'select_account', requestable: true }), 0);
  return {
    adapter: state.adapter,
    jwks: { keys: [signingKey] },
    cookies: { keys: [randomBytes(24).toString('base64url')] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clockTolerance: 0,
    // Names of people stand in the ID token, where a relying party without a UserInfo request looks for them.
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'] },
    pkce: { required: () => true },
    responseTypes: ['code'],
    interactions: { policy, url: (_: Context, { uid }: { uid: string }) => `${INTERACTIONS}${uid}` },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      revocation: { enabled: true, allowedPolicy: ownTokensOnly },
    },
    findAccount: (_: Context, id: string) => {
      const account = accounts.find((known) => known.id === id);
      if (account === undefined) return undefined;
      const { name, email } = account;
      return {
        accountId: id,
        claims: () => ({ sub: id, name, preferred_username: id, email, email_verified: true }),
      };
    },
    issueRefreshToken: (_: Context, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: () => true,
    expiresWithSession: () => false,
    renderError: (context: Context, out: { error: string; error_description?: string }) => {
      context.type = 'html';
      context.body = troublePage(brand, out.error, out.error_description ?? '');
    },
    ttl: {
      AccessToken: accessTokenSeconds,
      AuthorizationCode: 60,
      Grant: 14 * DAY_SECONDS,
      IdToken: 3600,
      Interaction: 3600,
      RefreshToken: 14 * DAY_SECONDS,
      Session: DAY_SECONDS,
    },
  };
}

function ownTokensOnly(_: Context, client: { clientId: string }, token: { clientId?: string }): boolean {
  return token.clientId === client.clientId;
}
