/**
 * Sign-in of a person in the browser at the issuer of this MCP server (OpenID Connect, code + PKCE): the same issuer
 * and the same immutable claim that access tokens are held against (R10). Nothing of the tokens is kept.
 */
import * as client from 'openid-client';
import { isRefusal, Refusal, type Reason } from '../../src/errors.ts';
import { ownerOf, subjectOf, type SubjectClaim } from '../../src/elicitation/owner.ts';
import type { Secret } from '../../src/secret.ts';

/** What a sign-in needs on the way back; sealed in a cookie of the browser that started it (R9). */
export interface PendingSignIn {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Path that the sign-in returns to: the one it started from. */
  readonly returnTo: string;
}

/** Who signed in. */
export interface IssuerPerson {
  readonly owner: string;
  readonly label: string;
}

export interface IssuerClient {
  /** Host that people are sent to. */
  readonly host: string;
  /** @param fresh the person has to prove who they are again. */
  begin(returnTo: string, fresh: boolean): Promise<{ url: URL; pending: PendingSignIn }>;
  /**
   * @throws Refusal `access_denied`, `issuer_mismatch`, `response_malformed`, `provider_unavailable`,
   *   `provider_misconfigured`.
   */
  finish(query: URLSearchParams, pending: PendingSignIn): Promise<IssuerPerson>;
}

/** How the issuer is reached. */
export interface IssuerClientOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret | null;
  readonly subjectClaim: SubjectClaim;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  /** The one way out (R17). */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

export function openIssuerClient(options: IssuerClientOptions): IssuerClient {
  const { issuer, clientId, clientSecret, redirectUri } = options;
  let discovered: Promise<client.Configuration> | undefined;

  // Discovered on first use and again after a failure: an issuer that is down at start-up is no reason not to start.
  async function configuration(): Promise<client.Configuration> {
    discovered ??= discover();
    try {
      return await discovered;
    } catch (error) {
      discovered = undefined;
      throw new Refusal('provider_unavailable', { cause: error });
    }
  }

  function discover(): Promise<client.Configuration> {
    const authentication =
      clientSecret === null ? client.None() : client.ClientSecretPost(clientSecret.reveal());
    return client.discovery(new URL(issuer), clientId, undefined, authentication, {
      [client.customFetch]: (url, init) => options.fetch(url, init as RequestInit),
      execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
    });
  }

  return {
    host: new URL(issuer).host,

    async begin(returnTo, fresh) {
      const config = await configuration();
      const pending: PendingSignIn = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        returnTo,
      };
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: options.scopes.join(' '),
        state: pending.state,
        nonce: pending.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
        code_challenge_method: 'S256',
        ...(fresh ? { prompt: 'login' } : {}),
      });
      return { url, pending };
    },

    async finish(query, pending) {
      const config = await configuration();
      // Before anything is sent anywhere: exactly the issuer that was asked (RFC 9207).
      const { issuer: asked } = config.serverMetadata();
      if (query.getAll('iss').some((named) => named !== asked)) throw new Refusal('issuer_mismatch');
      const url = new URL(redirectUri);
      url.search = query.toString();
      let claims: client.IDToken | undefined;
      try {
        const tokens = await client.authorizationCodeGrant(config, url, {
          expectedState: pending.state,
          expectedNonce: pending.nonce,
          pkceCodeVerifier: pending.verifier,
          idTokenExpected: true,
        });
        claims = tokens.claims();
      } catch (error) {
        throw new Refusal(reasonOf(error), { cause: error });
      }
      if (claims === undefined) throw new Refusal('response_malformed');
      const subject = subjectOf(claims, options.subjectClaim);
      if (subject === undefined) {
        throw new Refusal('response_malformed', { facts: { claim: options.subjectClaim } });
      }
      return { owner: ownerOf({ issuer, subject }), label: labelOf(claims) };
    },
  };
}

/** What went wrong at the issuer: said no, is in trouble, does not know us, or answered what it should not. */
function reasonOf(error: unknown): Reason {
  if (error instanceof client.AuthorizationResponseError) {
    return error.error === 'access_denied' ? 'access_denied' : 'provider_unavailable';
  }
  if (error instanceof client.ResponseBodyError) {
    if (error.status >= 500) return 'provider_unavailable';
    return error.error === 'invalid_grant' ? 'response_malformed' : 'provider_misconfigured';
  }
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    if (isRefusal(one)) return one.reason;
    if (one.cause instanceof Response && one.cause.status >= 500) return 'provider_unavailable';
  }
  return 'response_malformed';
}

/** How the issuer calls the person: for the person's own eyes. */
function labelOf(claims: client.IDToken): string {
  for (const name of ['email', 'preferred_username', 'name']) {
    const value = claims[name];
    if (typeof value === 'string' && value !== '') return value.slice(0, 200);
  }
  return claims.sub.slice(0, 200);
}
