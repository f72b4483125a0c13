/**
 * This server as an OAuth resource server (MCP, basic/authorization; RFC 6750, RFC 9068): who calls, as an access token
 * of the one configured issuer proves it. It never passes a token on and never asks an issuer that a token names.
 *
 * Refused besides what is expired, foreign or forged: ID tokens (R10), tokens for another audience, tokens without a
 * client (R11), and tokens that are bound to a key, whose proof nobody here would check.
 */
import { createHash } from 'node:crypto';
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose';
import { Refusal } from '../errors.ts';
import type { Caller } from '../engine/caller.ts';
import { ownerOf, SUBJECT_CLAIMS, subjectOf, type SubjectClaim } from '../elicitation/owner.ts';
import { missingScopes, parseScopes } from '../elicitation/scopes.ts';
import { isObject } from './json-rpc.ts';

/** A caller, and until when what proved it is good. */
export interface Authenticated extends Caller {
  /** Wall clock. Streams end then; unlimited when absent. */
  readonly validUntilMs?: number;
}

/** What the check needs of a request. */
export interface AuthenticatedRequest {
  readonly headers: { readonly [name: string]: string | string[] | undefined };
}

/**
 * Says who calls. Undefined means that nobody has said so.
 *
 * @throws Refusal `token_missing`, `token_invalid`, `token_scope`, `provider_unavailable`.
 */
export type Authenticate = (
  request: AuthenticatedRequest,
) => Promise<Authenticated | undefined> | Authenticated | undefined;

/** Fetches over the one dispatcher of the server (R17). */
export type FetchLike = (url: string, init?: RequestInit) => Promise<Response>;

/** How access tokens are held. */
export interface BearerOptions {
  /** Exactly as the issuer writes itself (RFC 8414, 2). */
  readonly issuer: string;
  /** Where its keys are; found through its metadata when absent. */
  readonly jwksUri?: string;
  /** Audience of the tokens; the resource's URL by default (RFC 8707, RFC 9068). */
  readonly audience: string;
  readonly requiredScopes: readonly string[];
  /** The claim that names a person for good (R10). */
  readonly subjectClaim: SubjectClaim;
  /** Stands in where tokens name no client: all clients of a person are then the same one. */
  readonly clientIdWhenMissing?: string;
  /**
   * Also takes tokens whose header does not say `at+jwt`, for issuers that cannot (RFC 9068, 2.1). Danger: an ID token
   * is then only told apart by its audience and its claims.
   */
  readonly acceptsUntypedTokens?: boolean;
  readonly fetch: FetchLike;
  readonly wallMs: () => number;
}

/** Longest token that is looked at, in characters. */
const LONGEST_TOKEN = 16_384;
const REMEMBERED_FOR_MS = 30_000;
const REMEMBERED = 5_000;
const TOLERANCE_S = 5;
/** Signatures only: what verifies here can be made by the issuer alone. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
/** Claims that only ID tokens carry (OpenID Connect Core 1.0, 2 and 3.1.3.6). */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash'];

interface Remembered {
  readonly caller: Authenticated;
  readonly untilMs: number;
}

/**
 * Opens the check.
 *
 * @throws Refusal `configuration_invalid`.
 */
export function openBearer(options: BearerOptions): Authenticate {
  const { issuer, audience, requiredScopes, subjectClaim, wallMs } = options;
  if (!(SUBJECT_CLAIMS as readonly string[]).includes(subjectClaim)) {
    throw new Refusal('configuration_invalid', {
      message: `issuer.subjectClaim: "${String(subjectClaim)}" does not name a person for good; use ${SUBJECT_CLAIMS.join(' or ')}`,
    });
  }
  const keys = issuerKeys(options);
  const remembered = new Map<string, Remembered>();

  function remember(digest: string, entry: Remembered): void {
    if (remembered.size >= REMEMBERED) {
      const oldest = remembered.keys().next();
      if (oldest.done !== true) remembered.delete(oldest.value);
    }
    remembered.set(digest, entry);
  }

  async function verify(token: string): Promise<Authenticated> {
    let payload: JWTPayload;
    try {
      const verified = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        requiredClaims: ['exp'],
        clockTolerance: TOLERANCE_S,
        currentDate: new Date(wallMs()),
        ...(options.acceptsUntypedTokens === true ? {} : { typ: 'at+jwt' }),
      });
      payload = verified.payload;
    } catch (error) {
      throw unverified(error);
    }
    if (isIdToken(payload)) throw invalid('It is an ID token.');
    if (payload['cnf'] !== undefined) throw invalid('It is bound to a key.');
    const subject = subjectOf(payload, subjectClaim);
    if (subject === undefined) throw invalid(`It has no usable ${subjectClaim}.`);
    const clientId = clientOf(payload) ?? options.clientIdWhenMissing;
    if (clientId === undefined) throw invalid('It names no client.');
    const scopes = scopesOf(payload);
    const missing = missingScopes(requiredScopes, scopes);
    if (missing.length > 0) throw new Refusal('token_scope', { facts: { missing } });
    return {
      owner: ownerOf({ issuer, subject }),
      clientId,
      scopes,
      validUntilMs: (payload.exp ?? 0) * 1_000,
    };
  }

  return async (request) => {
    const token = bearerOf(request.headers['authorization']);
    if (token === undefined) return undefined;
    const digest = createHash('sha256').update(token).digest('base64');
    const nowMs = wallMs();
    const known = remembered.get(digest);
    if (known !== undefined && nowMs < known.untilMs) return known.caller;
    remembered.delete(digest);
    const caller = await verify(token);
    const untilMs = Math.min(nowMs + REMEMBERED_FOR_MS, caller.validUntilMs ?? 0);
    remember(digest, { caller, untilMs });
    return caller;
  };
}

/** Reads the header (RFC 6750, 2.1). Tokens anywhere else are not looked for. */
function bearerOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== 'string') return undefined;
  const match = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(header);
  if (match?.[1] === undefined) {
    // Another scheme is nobody saying who calls; a bearer that cannot be read is a bad one.
    if (!/^bearer\b/i.test(header)) return undefined;
    throw invalid('It is not readable.');
  }
  if (match[1].length > LONGEST_TOKEN) throw invalid('It is too long.');
  return match[1];
}

function invalid(why: string, cause?: unknown): Refusal {
  return new Refusal('token_invalid', {
    message: `The access token is not valid here. ${why}`,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Tells a bad token from keys that could not be had: only the first is the caller's affair. */
function unverified(error: unknown): unknown {
  if (error instanceof Refusal) return error;
  if (error instanceof errors.JWTExpired) return invalid('It is expired.', error);
  if (error instanceof errors.JWTClaimValidationFailed) {
    return invalid(`Its ${error.claim} is not accepted.`, error);
  }
  if (
    error instanceof errors.JWKSTimeout ||
    error instanceof errors.JWKSInvalid ||
    !(error instanceof errors.JOSEError)
  ) {
    return new Refusal('provider_unavailable', { cause: error });
  }
  // A JWKS that could not be fetched is a plain JOSEError; every judgement of the token is a class of its own.
  if (error.constructor === errors.JOSEError) return new Refusal('provider_unavailable', { cause: error });
  return invalid('It cannot be verified.', error);
}

function isIdToken(payload: JWTPayload): boolean {
  if (ID_TOKEN_CLAIMS.some((claim) => payload[claim] !== undefined)) return true;
  // Issuers that write the kind of a token into it: Keycloak, Amazon Cognito.
  return payload['typ'] === 'ID' || payload['token_use'] === 'id';
}

function clientOf(payload: JWTPayload): string | undefined {
  const { client_id: clientId, azp } = payload;
  for (const value of [clientId, azp]) if (typeof value === 'string' && value !== '') return value;
  return undefined;
}

function scopesOf(payload: JWTPayload): string[] {
  const { scope, scp } = payload;
  const given = scope ?? scp;
  if (typeof given === 'string') return parseScopes(given);
  return Array.isArray(given) ? given.filter((one): one is string => typeof one === 'string') : [];
}

/** The issuer's keys, found through its metadata at the first need and kept by jose from then on. */
function issuerKeys({ issuer, jwksUri, fetch }: BearerOptions): JWTVerifyGetKey {
  let keys: Promise<JWTVerifyGetKey> | undefined;
  const open = (uri: string): JWTVerifyGetKey =>
    createRemoteJWKSet(new URL(uri), { [customFetch]: (url, init) => fetch(url, init as RequestInit) });
  return async (header, token) => {
    keys ??= (jwksUri === undefined ? discoverJwksUri(issuer, fetch) : Promise.resolve(jwksUri))
      .then(open)
      .catch((error: unknown) => {
        keys = undefined;
        throw error;
      });
    return (await keys)(header, token);
  };
}

/** RFC 8414 section 3.1 and OpenID Connect Discovery 1.0 section 4, in the order that MCP names. */
function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
}

async function discoverJwksUri(issuer: string, fetch: FetchLike): Promise<string> {
  let cause: unknown;
  for (const url of new Set(metadataUrls(issuer))) {
    try {
      const answer = await fetch(url, {
        headers: { accept: 'application/json' },
        redirect: 'manual',
        signal: AbortSignal.timeout(5_000),
      });
      if (answer.status !== 200) continue;
      const metadata: unknown = await answer.json();
      // A document that speaks for another issuer is not this one's (RFC 8414, 3.3).
      if (!isObject(metadata) || metadata['issuer'] !== issuer) continue;
      const uri = metadata['jwks_uri'];
      if (typeof uri === 'string' && URL.canParse(uri)) return uri;
    } catch (error) {
      cause = error;
    }
  }
  throw new Refusal('provider_unavailable', {
    message: "The issuer's metadata could not be read.",
    ...(cause === undefined ? {} : { cause }),
  });
}
