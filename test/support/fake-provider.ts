/**
 * An OAuth provider that does what a test tells it to: every fault of `Switches`, answers that wait at a
 * gate, and a log that counts each call. It approves at once, so that no browser is needed; PKCE, client
 * authentication, single use of codes and the family rule of refresh tokens are real. Loopback only.
 */
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import formbody from '@fastify/formbody';
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { secret, type Secret } from '../../src/secret.ts';
import { CUT, isClient, json, oauthError, replaced, wrapped, type Answer } from './fake-provider-answers.ts';
import { openGrants, type Grant, type RefreshToken } from './fake-provider-grants.ts';
import { FAULTLESS, type Switches, type TokenReply } from './fake-provider-switches.ts';

/** What a call was for. */
export type CallKind =
  'metadata' | 'authorize' | 'exchange' | 'refresh' | 'token-other' | 'revoke' | 'userinfo' | 'api';

export interface Call {
  readonly kind: CallKind;
  /** Path and query. */
  readonly url: string;
  /** 0 where the connection was cut. */
  readonly status: number;
  readonly atMs: number;
  /** `Referer`, which should never hold anything worth stealing. */
  readonly referer: string | undefined;
  /** Error code of an OAuth answer. */
  readonly error: string | undefined;
  /** `scope` of the request. */
  readonly scope: string | undefined;
  /** Which refresh token was presented, by its ordinal; undefined for others and for an unknown one. */
  readonly refreshToken: number | undefined;
}

/** Holds answers back. */
export interface Gate {
  /** Resolves when a call stands at the gate, its work done and its answer not sent. */
  readonly reached: Promise<void>;
  /** Lets it pass, and all that come later. */
  readonly open: () => void;
}

/** What an OAuth client has to be told. */
export interface FakeProviderSettings {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint: string;
  readonly userinfoEndpoint: string;
  readonly apiUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
}

export interface FakeProvider {
  readonly origin: string;
  readonly settings: FakeProviderSettings;
  /** Every call, in the order of their answers. */
  readonly calls: readonly Call[];
  /** How many calls of these kinds there were. */
  count(...kinds: readonly CallKind[]): number;
  /** Every code and token ever made, to be searched for where they must not be. */
  readonly secrets: readonly string[];
  /**
   * Every authorization response that was sent, as the URL that the browser is led to: a test may send one
   * again.
   */
  readonly callbacks: readonly string[];
  /** Turns switches; the others stay. */
  set(switches: Partial<Switches>): void;
  /** Puts a gate before answers of a kind. */
  gate(kind: CallKind): Gate;
  expireAccessTokens(): void;
  /** Ends every grant: refresh tokens are dead as well. */
  endGrants(): void;
  close(): Promise<void>;
}

const CLIENT_ID = 'fake-client';

/** @param host loopback address; another address is another site to a browser. Default `127.0.0.1`. */
export async function openFakeProvider(
  switches: Partial<Switches> = {},
  { host = '127.0.0.1' }: { readonly host?: string } = {},
): Promise<FakeProvider> {
  if (!/^127\.\d+\.\d+\.\d+$/.test(host)) throw new TypeError('host: the fake provider stays on loopback');
  let current: Switches = { ...FAULTLESS, ...switches };
  const clientSecret = `fake-secret-${randomBytes(18).toString('base64url')}`;
  const calls: Call[] = [];
  const callbacks: string[] = [];
  const grants = openGrants();
  const gates = new Map<CallKind, { readonly reach: () => void; readonly opened: Promise<void> }>();
  const latches: (() => void)[] = [];
  const closing = new AbortController();
  const server = fastify({ bodyLimit: 262_144 });
  await server.register(formbody);

  const nowMs = (): number => Date.now() + current.clockOffsetMs;

  /** Counts an answer that replaced the right one; after the last, the switch is off. */
  function countDown(name: 'userinfo' | 'api' | 'exchange' | 'refresh'): void {
    const value = current[name] as { times?: number } | null;
    if (value?.times === undefined) return;
    const left = value.times - 1;
    current = { ...current, [name]: left > 0 ? { ...value, times: left } : FAULTLESS[name] };
  }

  function answer(kind: CallKind, work: (request: FastifyRequest) => Work) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const { answer: given, kind: as = kind, scope, refreshToken, delays = false } = work(request);
      const { delayMs } = current;
      if (delays && delayMs > 0)
        await wait(delayMs, undefined, { signal: closing.signal }).catch(() => undefined);
      const gate = gates.get(as);
      gate?.reach();
      await gate?.opened;
      calls.push({
        kind: as,
        url: request.url,
        status: given === CUT ? 0 : given.status,
        atMs: Date.now(),
        referer: request.headers.referer,
        error: given === CUT ? undefined : given.error,
        scope,
        refreshToken,
      });
      if (given === CUT) {
        reply.hijack();
        request.raw.socket.destroy();
        return reply;
      }
      return reply
        .code(given.status)
        .headers({ date: new Date(nowMs()).toUTCString(), ...given.headers })
        .send(given.body);
    };
  }

  server.get(
    '/.well-known/oauth-authorization-server',
    answer('metadata', () => ({ answer: json(200, metadata()) })),
  );
  server.get('/authorize', answer('authorize', authorize));
  server.post('/token', answer('token-other', token));
  server.post('/revoke', answer('revoke', revoke));
  server.get(
    '/userinfo',
    answer('userinfo', (request) => ({ answer: resource(request, 'userinfo') })),
  );
  server.get(
    '/api/*',
    answer('api', (request) => ({ answer: resource(request, 'api') })),
  );

  await server.listen({ host, port: 0 });
  const origin = `http://${host}:${(server.server.address() as AddressInfo).port}`;

  function metadata() {
    return {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      revocation_endpoint: `${origin}/revoke`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      ...(current.issAdvertised ? { authorization_response_iss_parameter_supported: true } : {}),
    };
  }

  function authorize(request: FastifyRequest): Work {
    const asked = request.query as Record<string, string | undefined>;
    const { redirect_uri: redirectUri, scope, state, code_challenge: challenge } = asked;
    const isGood =
      asked['client_id'] === CLIENT_ID &&
      asked['response_type'] === 'code' &&
      asked['code_challenge_method'] === 'S256' &&
      challenge !== undefined &&
      redirectUri !== undefined &&
      URL.canParse(redirectUri);
    if (!isGood) return { answer: oauthError(400, 'invalid_request'), scope };
    const back = new URL(redirectUri);
    const { authorizeError, grantedScopes, account, awkwardCodes, iss } = current;
    if (authorizeError !== null) {
      back.searchParams.set('error', authorizeError.error);
      const { description } = authorizeError;
      if (description !== undefined) back.searchParams.set('error_description', description);
    } else if (!current.authorizeNothing) {
      const scopes =
        grantedScopes === 'as-asked' ? (scope ?? '').split(/[ ,]+/).filter(Boolean) : grantedScopes;
      const code = grants.newCode({ account, scopes, redirectUri, challenge }, awkwardCodes);
      back.searchParams.set('code', code);
    }
    if (state !== undefined) back.searchParams.set('state', state);
    if (iss !== 'missing')
      back.searchParams.set('iss', iss === 'right' ? origin : 'http://127.0.0.1:9/other');
    for (const [name, value] of Object.entries(current.extraCallbackParameters)) {
      back.searchParams.append(name, value);
    }
    callbacks.push(back.href);
    const error = authorizeError?.error;
    const headers = { location: back.href };
    return { answer: { status: 302, body: '', headers, ...(error === undefined ? {} : { error }) }, scope };
  }

  function token(request: FastifyRequest): Work {
    const form = (request.body ?? {}) as Record<string, string | undefined>;
    const grantType = form['grant_type'];
    const name =
      grantType === 'authorization_code' ? 'exchange' : grantType === 'refresh_token' ? 'refresh' : null;
    const scope = form['scope'];
    if (name === null) return { answer: oauthError(400, 'unsupported_grant_type'), scope };
    const presented = name === 'refresh' ? grants.findRefreshToken(form['refresh_token'] ?? '') : undefined;
    const call = { kind: name, scope, refreshToken: presented?.ordinal, delays: true } as const;
    if (!isClient(request, form, { id: CLIENT_ID, secret: clientSecret }))
      return { ...call, answer: oauthError(401, 'invalid_client') };

    const reply: TokenReply = current[name];
    if (reply.kind !== 'tokens') {
      countDown(name);
      return { ...call, answer: reply.kind === 'reset' ? CUT : replaced(reply) };
    }
    const grant =
      name === 'exchange'
        ? grants.redeemCode(form['code'] ?? '', form['redirect_uri'] ?? '', form['code_verifier'] ?? '')
        : presented &&
          grants.redeemRefreshToken(presented, {
            rotate: current.rotate,
            graceMs: current.graceMs,
            nowMs: nowMs(),
          });
    if (grant === undefined) return { ...call, answer: oauthError(400, 'invalid_grant') };
    if (
      name === 'refresh' &&
      (scope ?? '').split(/[ ,]+/).some((one) => one !== '' && !grant.scopes.includes(one))
    ) {
      return { ...call, answer: oauthError(400, 'invalid_scope') };
    }
    const body = tokens(grant, name, presented);
    return { ...call, answer: current.dropReply ? CUT : wrapped(reply, body) };
  }

  function tokens(grant: Grant, name: 'exchange' | 'refresh', presented: RefreshToken | undefined) {
    const { tokenLength, omitRefreshToken, expiresIn, tokenType, scopeSeparator, nested, rotate } = current;
    const lives = { untilMs: nowMs() + current.accessTokenMs, length: tokenLength, account: grant.account };
    const accessToken = grants.newAccessToken(grant, lives);
    const kept = rotate ? undefined : presented;
    const refreshToken = (kept ?? grants.newRefreshToken(grant, tokenLength)).token;
    const leavesOut =
      omitRefreshToken === 'always' || (omitRefreshToken === 'on-refresh' && name === 'refresh');
    const mine = {
      access_token: accessToken,
      ...(tokenType === 'missing' ? {} : { token_type: tokenType }),
      ...(expiresIn === 'missing' ? {} : { expires_in: expiresIn }),
      ...(leavesOut ? {} : { refresh_token: refreshToken }),
      ...(current.omitScope ? {} : { scope: grant.scopes.join(scopeSeparator) }),
    };
    if (nested === 'no') return mine;
    const person = { ok: true, authed_user: { id: grant.account, ...mine } };
    if (nested === 'authed-user') return person;
    return {
      ...person,
      access_token: grants.newAccessToken(grant, { ...lives, account: 'bot' }),
      token_type: 'bot',
      scope: 'bot',
    };
  }

  function revoke(request: FastifyRequest): Work {
    const form = (request.body ?? {}) as Record<string, string | undefined>;
    if (!isClient(request, form, { id: CLIENT_ID, secret: clientSecret }))
      return { answer: oauthError(401, 'invalid_client') };
    const presented = grants.findRefreshToken(form['token'] ?? '');
    grants.revoke(form['token'] ?? '');
    return { answer: { status: 200, body: '', headers: {} }, refreshToken: presented?.ordinal };
  }

  function resource(request: FastifyRequest, name: 'userinfo' | 'api'): Answer {
    const reply = current[name];
    if (reply !== null) {
      countDown(name);
      return replaced(reply);
    }
    // Exactly `Bearer`: an API that takes no other spelling is no rarity.
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const holder = grants.holderOf(given, nowMs());
    if (holder === undefined) {
      const refused = oauthError(401, 'invalid_token');
      return {
        ...refused,
        headers: { ...refused.headers, 'www-authenticate': 'Bearer error="invalid_token"' },
      };
    }
    return json(200, { ...holder });
  }

  return {
    origin,
    settings: {
      issuer: origin,
      authorizationEndpoint: `${origin}/authorize`,
      tokenEndpoint: `${origin}/token`,
      revocationEndpoint: `${origin}/revoke`,
      userinfoEndpoint: `${origin}/userinfo`,
      apiUrl: `${origin}/api/items`,
      clientId: CLIENT_ID,
      clientSecret: secret(clientSecret),
    },
    calls,
    count: (...kinds) => calls.filter(({ kind }) => kinds.includes(kind)).length,
    secrets: grants.secrets,
    callbacks,
    set(more) {
      current = { ...current, ...more };
    },
    gate(kind) {
      const reached = Promise.withResolvers<void>();
      const opened = Promise.withResolvers<void>();
      const open = (): void => opened.resolve();
      latches.push(open);
      gates.set(kind, { reach: () => reached.resolve(), opened: opened.promise });
      return { reached: reached.promise, open };
    },
    expireAccessTokens: () => grants.expireAccessTokens(),
    endGrants: () => grants.endGrants(),
    async close() {
      closing.abort();
      for (const open of latches) open();
      server.server.closeAllConnections();
      await server.close();
    },
  };
}

/** What a handler has done, and what it wants to say. */
interface Work {
  readonly answer: Answer | typeof CUT;
  readonly kind?: CallKind;
  readonly scope?: string | undefined;
  readonly refreshToken?: number | undefined;
  /** Whether `delayMs` holds the answer back. */
  readonly delays?: boolean;
}
