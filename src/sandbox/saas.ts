/**
 * Paperboat, the sandbox's SaaS: a second authorization server on another site, with accounts of its own,
 * consent, short-lived opaque access tokens and refresh tokens that rotate; a refresh token used twice ends
 * the whole grant. What goes wrong with tokens in real life is a function call here, never an HTTP
 * endpoint.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'oidc-provider';
import { secret, type Secret } from '../secret.ts';
import { PAPERBOAT_ACCOUNTS, type Account } from './accounts.ts';
import { openAuthorizationServer } from './authorization-server.ts';
import { requireLoopback } from './loopback.ts';
import {
  answerApi,
  PROFILE_SCOPE,
  RECORDS_SCOPE,
  type ApiCall,
  type ApiFault,
  type ApiParts,
} from './saas-api.ts';

export interface SaasOptions {
  /** Where the browser returns to with an authorization response. */
  readonly redirectUri: string;
  /** Lifetime of access tokens. Default 300. */
  readonly accessTokenSeconds?: number;
  readonly addresses: readonly string[];
  readonly port: number;
}

/** One request at the token endpoint; never what it carried. */
export interface TokenCall {
  readonly grantType: string;
  /** `ok`, or the error code of the answer (RFC 6749, section 5.2). */
  readonly outcome: string;
  /** Tells the code or refresh token that was redeemed apart from others, without showing it. */
  readonly spent: string;
  readonly atMs: number;
}

/** What can be made to go wrong once. `token-reply-lost`: the exchange happens, its answer never arrives. */
export type Fault = ApiFault | 'token-unavailable' | 'token-reply-lost';

export interface Saas {
  /** Issuer identifier, origin of the authorization server and of the API. */
  readonly origin: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly accounts: readonly Account[];
  /** Every request at the token endpoint that was understood, in order. */
  readonly tokenCalls: readonly TokenCall[];
  /** Requests at the revocation endpoint. */
  readonly revocationCalls: number;
  readonly apiCalls: readonly ApiCall[];
  /** Every access token is dead from now on; refresh tokens live. Returns how many died. */
  expireAccessTokens(): number;
  /** Every grant of an account is dead, refresh tokens included. Returns how many died. */
  revokeGrants(accountId: string): number;
  /** Every grant of an account has lost its permissions; a new consent gives them back. Returns how many. */
  narrowGrants(accountId: string): number;
  /** Every cursor of the records is dead from now on. */
  expireCursors(): void;
  /**
   * Runs an action once, when `n` more pages of records have been read and before the last of them is sent.
   */
  afterPages(n: number, action: () => void): void;
  /** The next request of that kind goes wrong; calls add up. */
  failNext(fault: Fault): void;
  close(): Promise<void>;
}

const CLIENT_ID = 'keyturn';

export async function openSaas(options: SaasOptions): Promise<Saas> {
  requireLoopback('redirectUri', options.redirectUri);
  const clientSecret = secret(randomBytes(24).toString('base64url'));
  const tokenCalls: TokenCall[] = [];
  const apiCalls: ApiCall[] = [];
  const faults: Fault[] = [];
  const narrowed = new Set<string>();
  let revocationCalls = 0;
  let cursorAge = 0;
  let watches: { left: number; readonly action: () => void }[] = [];

  function take<F extends Fault>(...kinds: readonly F[]): F | undefined {
    const at = faults.findIndex((fault) => (kinds as readonly Fault[]).includes(fault));
    return at === -1 ? undefined : (faults.splice(at, 1)[0] as F);
  }

  function onPage(): void {
    for (const watch of watches) watch.left -= 1;
    const due = watches.filter(({ left }) => left <= 0);
    watches = watches.filter(({ left }) => left > 0);
    for (const { action } of due) action();
  }

  const api: ApiParts = {
    provider: () => server.provider,
    accounts: PAPERBOAT_ACCOUNTS,
    log: (call) => void apiCalls.push(call),
    takeFault: () => take('api-unavailable', 'api-rate-limited', 'api-dropped'),
    onPage,
    cursorAge: () => cursorAge,
    isNarrowed: (grantId) => narrowed.has(grantId ?? ''),
  };

  function logToken(context: Context, outcome: string): void {
    const { grant_type: grantType, code, refresh_token: refreshToken } = context.oidc.params ?? {};
    const redeemed = typeof code === 'string' ? code : typeof refreshToken === 'string' ? refreshToken : '';
    const spent = createHash('sha256').update(redeemed).digest('base64url').slice(0, 12);
    if (outcome === 'ok' && grantType === 'authorization_code') narrowed.clear();
    tokenCalls.push({
      grantType: typeof grantType === 'string' ? grantType : '',
      outcome,
      spent,
      atMs: Date.now(),
    });
  }

  const server = await openAuthorizationServer({
    addresses: options.addresses,
    port: options.port,
    brand: { name: 'Paperboat', tagline: 'your boats, folded and filed' },
    accounts: PAPERBOAT_ACCOUNTS,
    accessTokenSeconds: options.accessTokenSeconds ?? 300,
    route(path) {
      if (path.startsWith('/api/')) return (request, response) => answerApi(api, request, response);
      if (path === '/token/revocation') revocationCalls += 1;
      if (path !== '/token') return undefined;
      const fault = take('token-unavailable', 'token-reply-lost');
      if (fault === 'token-unavailable') return unavailable;
      return fault === 'token-reply-lost' ? loseReply : undefined;
    },
    configuration: () => ({
      clients: [
        {
          client_id: CLIENT_ID,
          client_name: 'Keyturn',
          client_secret: clientSecret.reveal(),
          token_endpoint_auth_method: 'client_secret_basic',
          redirect_uris: [options.redirectUri],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
      scopes: ['openid', 'offline_access', RECORDS_SCOPE, PROFILE_SCOPE],
      clientBasedCORS: () => false,
      features: { resourceIndicators: { enabled: false } },
    }),
  });
  const { provider, issuer: origin, state } = server;
  const answer = provider.callback();

  async function loseReply(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Whatever is written goes nowhere: the connection ends instead.
    response.end = () => response.destroy();
    answer(request, response);
  }

  provider.on('grant.success', (context) => logToken(context, 'ok'));
  provider.on('grant.error', (context, error) => logToken(context, error.message));

  return {
    origin,
    authorizationEndpoint: `${origin}/auth`,
    tokenEndpoint: `${origin}/token`,
    revocationEndpoint: `${origin}/token/revocation`,
    clientId: CLIENT_ID,
    clientSecret,
    accounts: PAPERBOAT_ACCOUNTS,
    tokenCalls,
    get revocationCalls() {
      return revocationCalls;
    },
    apiCalls,
    expireAccessTokens: () => state.endAll('AccessToken'),
    revokeGrants: (accountId) => state.endGrantsOf(accountId),
    narrowGrants(accountId) {
      const grants = state.grantsOf(accountId);
      grants.forEach((id) => narrowed.add(id));
      return grants.length;
    },
    expireCursors: () => void (cursorAge += 1),
    afterPages(n, action) {
      if (!Number.isInteger(n) || n < 1) throw new TypeError('afterPages: n is a whole number from 1 on');
      watches.push({ left: n, action });
    },
    failNext: (fault) => void faults.push(fault),
    close: () => server.close(),
  };
}

async function unavailable(_: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":"temporarily_unavailable"}');
}
