/**
 * One provider, with us as its OAuth client (RFC 6749, 7636, 9207, 9126, 8707, 7009; OpenID Connect where the
 * provider has it), on openid-client. Holds no tokens and no state: data in, data out over HTTP.
 */
import * as oauth from 'openid-client';
import { Refusal } from '../errors.ts';
import { Secret, secret } from '../secret.ts';
import { retryAfterMs } from './api-answer.ts';
import { checkAuthorizationResponse, type ResponseCheck } from './authorization-response.ts';
import { clientAuthentication, type Registration } from './client-authentication.ts';
import type { Egress } from './egress.ts';
import { identify, type Identity } from './identity.ts';
import { revokeTokens } from './revocation.ts';
import { readTokenAnswer, type Redeemed, type TokenAnswer } from './token-answer.ts';
import type { TokenSet } from './token-set.ts';

/** An authorization request. */
export interface AuthorizationRequest {
  readonly state: string;
  /** S256. */
  readonly codeChallenge: string;
  readonly nonce?: string;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly forceConsent: boolean;
  readonly tenant: Readonly<Record<string, string>>;
}

/** A code to redeem. */
export interface CodeExchange {
  readonly code: Secret;
  readonly codeVerifier: Secret;
  readonly redirectUri: string;
  readonly nonce: string | undefined;
  /** The authorization response, for values that the profile captures. */
  readonly params: URLSearchParams;
  readonly tenant: Readonly<Record<string, string>>;
}

/** A form that asks for a credential. */
export interface CredentialForm {
  readonly fields: readonly {
    readonly name: string;
    readonly label: string;
    readonly kind: 'secret' | 'text';
    readonly hint?: string;
    readonly isOptional?: boolean;
    readonly maxLength: number;
  }[];
  readonly helpUrl?: string;
}

/**
 * A provider. Exchange and refresh throw the same refusals (D8): `grant_dead`, `provider_unavailable` (facts
 * `sent`, `status`, `retryAfterMs`), `provider_misconfigured`, `answer_malformed`. None carries a text of the
 * provider.
 */
export type Provider = ReturnType<typeof openProvider>;

const DISCOVERED_FOR_MS = 3_600_000;

export function openProvider(
  registration: Registration,
  options: {
    egress: Egress;
    wallMs: () => number;
    /** The one redirect URI registered there (R16), for providers that want it named at a refresh. */
    redirectUri?: string;
  },
) {
  const { profile, clientId } = registration;
  const { egress, wallMs } = options;
  const issuer = profile.issuer ?? `urn:keyturn:provider:${registration.id}`;
  /** RFC 8707 section 2: at the authorization endpoint and at the token endpoint alike. */
  const resource: Record<string, string> =
    profile.resource === undefined ? {} : { resource: profile.resource };
  let found: { at: number; metadata: Promise<oauth.ServerMetadata> } | undefined;

  function staticMetadata(): oauth.ServerMetadata {
    return {
      issuer,
      ...(profile.authorizationEndpoint === undefined
        ? {}
        : { authorization_endpoint: profile.authorizationEndpoint }),
      ...(profile.tokenEndpoint === undefined ? {} : { token_endpoint: profile.tokenEndpoint }),
      ...(profile.jwksUri === undefined ? {} : { jwks_uri: profile.jwksUri }),
      ...(profile.parEndpoint === undefined
        ? {}
        : { pushed_authorization_request_endpoint: profile.parEndpoint }),
    };
  }

  async function metadata(): Promise<oauth.ServerMetadata> {
    if (!profile.discovery) return staticMetadata();
    if (found === undefined || wallMs() - found.at > DISCOVERED_FOR_MS) {
      found = { at: wallMs(), metadata: discover() };
    }
    try {
      return await found.metadata;
    } catch (error) {
      found = undefined;
      throw error;
    }
  }

  async function discover(): Promise<oauth.ServerMetadata> {
    try {
      const config = await oauth.discovery(new URL(issuer), clientId, undefined, oauth.None(), {
        [oauth.customFetch]: (url, init) => egress.fetch(url, init as RequestInit),
        execute: issuer.startsWith('http:') ? [oauth.allowInsecureRequests] : [],
      });
      const server = config.serverMetadata();
      // Asked at a well-known address, the library compares the issuer only for some inputs (RFC 8414 section
      // 3.3).
      if (server.issuer !== issuer) throw otherIssuer();
      return server;
    } catch (error) {
      const refusal = refusalIn(error);
      if (refusal !== undefined && refusal.reason !== 'provider_unavailable') throw refusal;
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') throw otherIssuer();
      // Whatever happened here, nothing was redeemed.
      throw new Refusal('provider_unavailable', { facts: { provider: registration.id, sent: false } });
    }
  }

  function otherIssuer(): Refusal {
    return new Refusal('provider_misconfigured', {
      message: `The metadata of ${issuer} name another issuer.`,
      facts: { provider: registration.id, problem: 'issuer' },
    });
  }

  /** A configuration whose token calls go through the reading of answers; what was read is left in `seen`. */
  async function configuration(
    seen: { answer?: TokenAnswer; status?: number; retryMs?: number | undefined },
    redeemed: Redeemed,
  ) {
    const server = { ...(await metadata()) };
    if (redeemed === 'refresh token' && profile.refreshEndpoint !== undefined)
      server.token_endpoint = profile.refreshEndpoint;
    const config = new oauth.Configuration(server, clientId, undefined, clientAuthentication(registration));
    config.timeout = 30;
    if ((server.token_endpoint ?? '').startsWith('http:')) oauth.allowInsecureRequests(config);
    config[oauth.customFetch] = async (url, init) => {
      if (url !== server.token_endpoint) return beside(url, init as RequestInit);
      const response = await egress.fetch(url, asConfigured(init as RequestInit));
      seen.status = response.status;
      seen.retryMs = retryAfterMs(response.headers.get('retry-after'), wallMs());
      const raw = {
        status: response.status,
        contentType: response.headers.get('content-type') ?? '',
        body: await response.text(),
      };
      const answer = readTokenAnswer(profile, redeemed, raw);
      seen.answer = answer;
      if (answer.kind !== 'tokens') throw new Refusal('answer_malformed');
      // The library validates the rest: ID token, nonce, audience.
      return Response.json({
        access_token: answer.accessToken,
        token_type: 'bearer',
        ...(answer.refreshToken === undefined ? {} : { refresh_token: answer.refreshToken }),
        ...(answer.idToken === undefined || !profile.oidc ? {} : { id_token: answer.idToken }),
      });
    };
    return config;
  }

  /** A request that redeems nothing: an outage is told as one before the library makes a shape of it. */
  async function beside(url: string, init: RequestInit): Promise<Response> {
    const response = await egress.fetch(url, init);
    if (response.status !== 429 && response.status < 500) return response;
    await response.body?.cancel();
    throw new Refusal('provider_unavailable', {
      facts: { provider: registration.id, sent: false, status: response.status },
    });
  }

  function asConfigured(init: RequestInit): RequestInit {
    if (profile.tokenRequest !== 'json' || !(init.body instanceof URLSearchParams)) return init;
    const headers = { ...(init.headers as Record<string, string>), 'content-type': 'application/json' };
    return { ...init, headers, body: JSON.stringify(Object.fromEntries(init.body)) };
  }

  function refusalIn(error: unknown): Refusal | undefined {
    for (let one: unknown = error; one instanceof Error; one = one.cause) {
      if (one instanceof Refusal) return one;
    }
    return undefined;
  }

  async function redeem(
    redeemed: Redeemed,
    sent: readonly Secret[],
    grant: (config: oauth.Configuration) => Promise<unknown>,
  ): Promise<TokenSet> {
    const seen: { answer?: TokenAnswer; status?: number; retryMs?: number | undefined } = {};
    const config = await configuration(seen, redeemed);
    const receivedFrom = wallMs();
    try {
      await grant(config);
    } catch (error) {
      throw judge(error, seen, sent);
    }
    if (seen.answer?.kind !== 'tokens') throw new Refusal('answer_malformed', { facts: { sent: true } });
    const { answer } = seen;
    return {
      accessToken: secret(answer.accessToken),
      ...(answer.refreshToken === undefined ? {} : { refreshToken: secret(answer.refreshToken) }),
      ...(answer.scopes === undefined ? {} : { scopes: answer.scopes }),
      ...(answer.expiresInSeconds === undefined
        ? {}
        : { expiresAtMs: receivedFrom + answer.expiresInSeconds * 1_000 }),
      captured: answer.captured,
    };
  }

  /** D8. The provider's words end here; its code goes on as a fact. */
  function judge(
    error: unknown,
    seen: { answer?: TokenAnswer; status?: number; retryMs?: number | undefined },
    sent: readonly Secret[],
  ): unknown {
    // A code is a word of the provider's: one that gives back what we sent is not told.
    const secrets = [...sent, registration.clientSecret].flatMap((one) => one?.reveal() ?? []);
    const told = (word: string): string =>
      secrets.some((one) => one !== '' && word.includes(one)) ? 'unnamed' : word;
    const facts = {
      provider: registration.id,
      sent: true,
      ...(seen.status === undefined ? {} : { status: seen.status }),
      ...(seen.retryMs === undefined ? {} : { retryAfterMs: seen.retryMs }),
    };
    switch (seen.answer?.kind) {
      case 'dead':
        return new Refusal('grant_dead', { facts: { ...facts, code: told(seen.answer.code) } });
      case 'misconfigured':
        return new Refusal('provider_misconfigured', { facts: { ...facts, code: told(seen.answer.code) } });
      case 'later':
        return new Refusal('provider_unavailable', { facts: { ...facts, code: told(seen.answer.code) } });
      case 'malformed':
        return new Refusal('answer_malformed', { facts: { ...facts, problem: told(seen.answer.problem) } });
      case 'tokens':
        // The tokens came, but the ID token with them is not good: nothing of the answer is used.
        return new Refusal('answer_malformed', { facts: { ...facts, problem: 'id token' } });
      case undefined: {
        const refusal = refusalIn(error);
        if (refusal !== undefined) return refusal;
        return new Refusal('provider_unavailable', { facts });
      }
    }
  }

  return {
    id: registration.id,
    settings: profile,
    displayName: profile.displayName,
    issuer,
    usesNonce: profile.oidc,
    host: new URL(profile.authorizationEndpoint ?? (profile.discovery ? issuer : 'https://localhost')).host,
    revocationScope: profile.revocation?.ends ?? 'grant',

    /** Words for a scope, if the profile has any. */
    scopeWords(name: string): { words?: string } {
      const words = profile.scopeWords[name];
      return words === undefined ? {} : { words };
    },

    /** The address that *Continue* leads to: code, PKCE S256, state, and nonce where OIDC. */
    async authorizationRequest(request: AuthorizationRequest): Promise<URL> {
      const config = await configuration({}, 'code');
      const server = config.serverMetadata();
      if (server.authorization_endpoint === undefined) throw new Refusal('provider_misconfigured');
      const parameters: Record<string, string> = {
        ...profile.authorizationParameters,
        ...(request.forceConsent ? profile.consentParameters : {}),
        redirect_uri: request.redirectUri,
        state: request.state,
        code_challenge: request.codeChallenge,
        code_challenge_method: 'S256',
        ...(request.nonce === undefined ? {} : { nonce: request.nonce }),
        ...resource,
      };
      const openid = profile.oidc ? ['openid'] : [];
      const scopes = [...openid, ...profile.alwaysScopes, ...request.scopes];
      if (scopes.length > 0) {
        parameters[profile.scopeParameter] = [...new Set(scopes)].join(profile.scopeSeparator);
      }
      if (server.authorization_endpoint.startsWith('http:')) oauth.allowInsecureRequests(config);
      if (server.pushed_authorization_request_endpoint === undefined) {
        return oauth.buildAuthorizationUrl(config, parameters);
      }
      try {
        return await oauth.buildAuthorizationUrlWithPAR(config, parameters);
      } catch (error) {
        throw (
          refusalIn(error) ?? new Refusal('provider_misconfigured', { facts: { provider: registration.id } })
        );
      }
    },

    /** The checks of a response that need no ledger. @throws Refusal, see `checkAuthorizationResponse`. */
    async checkResponse(query: URLSearchParams, expected: { issuer: string }): Promise<ResponseCheck> {
      const advertised = profile.discovery
        ? (await metadata()).authorization_response_iss_parameter_supported === true
        : false;
      const { clientSecret } = registration;
      return checkAuthorizationResponse(profile, query, { ...expected, advertised, clientSecret });
    },

    /** Redeems a code: once, never again. */
    async exchange(exchange: CodeExchange): Promise<TokenSet> {
      // The library wants the response as a URL and checks state again; ours was checked against the ledger.
      const url = new URL(exchange.redirectUri);
      url.searchParams.set('code', exchange.code.reveal());
      url.searchParams.set('state', 'checked');
      const issued = exchange.params.get('iss');
      if (issued !== null) url.searchParams.set('iss', issued);
      const tokens = await redeem('code', [exchange.code, exchange.codeVerifier], (config) =>
        oauth.authorizationCodeGrant(
          config,
          url,
          {
            pkceCodeVerifier: exchange.codeVerifier.reveal(),
            expectedState: 'checked',
            ...(exchange.nonce === undefined ? {} : { expectedNonce: exchange.nonce, idTokenExpected: true }),
          },
          { ...profile.tokenParameters, ...resource },
        ),
      );
      const kept = profile.captureFromResponse.flatMap((name) => {
        const value = exchange.params.get(name);
        return value === null ? [] : [[name, value] as const];
      });
      return { ...tokens, captured: { ...exchange.tenant, ...Object.fromEntries(kept), ...tokens.captured } };
    },

    /**
     * Redeems a refresh token. What the answer leaves out is for `mergeTokenSet`. Asks for no more than was
     * granted.
     */
    refresh(tokens: TokenSet, _granted: { scopes: readonly string[] }): Promise<TokenSet> {
      const refreshToken = tokens.refreshToken;
      if (refreshToken === undefined) return Promise.reject(new Refusal('grant_dead'));
      return redeem('refresh token', [refreshToken, tokens.accessToken], (config) =>
        oauth.refreshTokenGrant(config, refreshToken.reveal(), {
          ...profile.refresh.parameters,
          ...(profile.refresh.sendsRedirectUri && options.redirectUri !== undefined
            ? { redirect_uri: options.redirectUri }
            : {}),
          ...resource,
        }),
      );
    },

    /**
     * Tells the provider that the tokens are not needed any more, in its own way.
     *
     * @returns `unsupported` when it has none.
     * @throws Refusal `provider_unavailable` (facts `sent`, `status`).
     */
    revoke(tokens: TokenSet): Promise<'revoked' | 'unsupported'> {
      return revokeTokens(registration, tokens, egress);
    },

    /**
     * Whose tokens these are, or undefined when the provider has no place to ask.
     *
     * @throws Refusal `provider_unavailable`, `grant_dead`, `answer_malformed`.
     */
    identity(tokens: TokenSet): Promise<Identity | undefined> {
      return identify(profile, tokens, egress, wallMs());
    },

    /** The form of a provider without OAuth. */
    credentialForm(): CredentialForm {
      if (profile.credential === undefined) throw new Refusal('provider_misconfigured');
      return profile.credential as CredentialForm;
    },

    /**
     * A typed credential as a token set. @throws Refusal `answer_malformed` (fact `field`) when one is no
     * use.
     */
    credential(fields: Readonly<Record<string, Secret>>): TokenSet {
      const wanted = profile.credential?.fields ?? [];
      const captured: Record<string, string> = {};
      let key: Secret | undefined;
      for (const { name, kind, isOptional } of wanted) {
        const text = fields[name]?.reveal().trim() ?? '';
        if (text === '' && isOptional === true) continue;
        // A key stands in a header: visible ASCII. The rest stands beside it in the ledger.
        const good = kind === 'secret' ? /^[\x21-\x7e]+$/.test(text) : text !== '';
        if (!good) throw new Refusal('answer_malformed', { facts: { field: name } });
        if (kind === 'secret') key = secret(text);
        else captured[name] = text;
      }
      if (key === undefined) throw new Refusal('answer_malformed', { facts: { field: 'key' } });
      return { accessToken: key, captured };
    },
  };
}
