/**
 * Answers of token endpoints, as providers really give them, brought to the form of RFC 6749 section 5 before
 * the OAuth library sees them. One function for the code exchange and the refresh. What is not understood
 * fails by name; a token that is not there is never made up. Pure.
 */
import { parseScopes } from '../elicitation/scopes.ts';
import { parseJson, textAt } from './answer-path.ts';
import type { Profile } from './profile.ts';

/**
 * What was redeemed. The rules are the same; some providers put the answer elsewhere or name a dead grant
 * otherwise.
 */
export type Redeemed = 'code' | 'refresh token';

/** What came back. */
export interface RawAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What it means. `code` is the provider's error code, never its text (D15). */
export type TokenAnswer =
  | {
      readonly kind: 'tokens';
      readonly accessToken: string;
      readonly refreshToken: string | undefined;
      readonly scopes: string[] | undefined;
      /** Seconds from receipt; undefined when missing or senseless (D12). */
      readonly expiresInSeconds: number | undefined;
      readonly idToken: string | undefined;
      readonly captured: Record<string, string>;
    }
  | { readonly kind: 'dead'; readonly code: string }
  | { readonly kind: 'misconfigured'; readonly code: string }
  | { readonly kind: 'later'; readonly code: string }
  | { readonly kind: 'malformed'; readonly problem: string };

/** Longest sensible lifetime of an access token: ten years mean nothing. */
const LONGEST_SECONDS = 366 * 24 * 3_600;

const DEAD = [
  'invalid_grant',
  'bad_refresh_token',
  'bad_verification_code',
  'invalid_code',
  'code_already_used',
];
const MISCONFIGURED = [
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'incorrect_client_credentials',
  'redirect_uri_mismatch',
  'unsupported_grant_type',
  'bad_client_secret',
  'invalid_client_id',
  'bad_redirect_uri',
  'invalid_request',
  'invalid_grant_type',
  'no_user_scopes',
];
const TRANSIENT = ['temporarily_unavailable', 'server_error', 'slow_down', 'ratelimited', 'rate_limited'];

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads the body as JSON or, where a provider sends that, as a form. */
function fieldsOf({ contentType, body }: RawAnswer): Fields | undefined {
  const text = body.replace(/^\uFEFF/, '').trim();
  const parsed = parseJson(text);
  if (parsed !== undefined) return isObject(parsed) ? parsed : undefined;
  const looksLikeForm = contentType.includes('x-www-form-urlencoded') || /^[\w.-]+=[^<>{}]*$/.test(text);
  return looksLikeForm && text.includes('=') ? Object.fromEntries(new URLSearchParams(text)) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

/**
 * A token that can stand in a header (RFC 6750 section 2.1, and what providers make of it): visible ASCII.
 */
function tokenOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) ? value : undefined;
}

/** Granted scopes: a text with any separator, or a list (`scope`, `scopes`). */
function scopesOf(fields: Fields): string[] | undefined {
  const given = fields['scope'] ?? fields['scopes'];
  if (Array.isArray(given)) return parseScopes(given.filter((one) => typeof one === 'string').join(' '));
  const text = textOf(given);
  return text === undefined ? undefined : parseScopes(text);
}

/** Whether an answer with a good status carries an error all the same. */
function saysError(fields: Fields, okMember: string | undefined): boolean {
  const { error } = fields;
  if (okMember !== undefined && fields[okMember] === false) return true;
  return error !== undefined && error !== null && error !== '' && error !== false;
}

function expiryOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value;
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return undefined;
  return seconds > 0 && seconds <= LONGEST_SECONDS ? Math.floor(seconds) : undefined;
}

/** The provider's error code, wherever it puts it. */
function errorCodeOf(fields: Fields): string | undefined {
  const { error, status, errorType, code } = fields;
  if (isObject(error)) return textOf(error['code']) ?? textOf(error['type']) ?? 'unnamed';
  return textOf(error) ?? textOf(errorType) ?? textOf(status) ?? textOf(code);
}

/** An error code as it may be logged: a short word, not a text. */
function word(code: string | undefined): string {
  return code !== undefined && /^[\w.-]{1,64}$/.test(code) ? code : 'unnamed';
}

/** Whether the profile knows this error of a refresh as the end of the grant. */
function isDead(profile: Profile, status: number, code: string, fields: Fields): boolean {
  const texts = [fields['error_description'], fields['message'], fields['reason']];
  return profile.errors.dead.some((one) => {
    if (typeof one === 'string') return one === code;
    const { says } = one;
    if (one.code !== code || (one.status !== undefined && one.status !== status)) return false;
    return says === undefined || texts.some((text) => typeof text === 'string' && text.includes(says));
  });
}

function judgeError(profile: Profile, redeemed: Redeemed, status: number, fields: Fields): TokenAnswer {
  const name = word(errorCodeOf(fields));
  const { errors } = profile;
  // An outage that speaks of a dead grant is still an outage.
  if (isOutage(status)) return { kind: 'later', code: name };
  if (errors.transient.includes(name)) return { kind: 'later', code: name };
  // Before the common list: Atlassian answers `unauthorized_client` for a refresh token that is over.
  if (redeemed === 'refresh token' && isDead(profile, status, name, fields))
    return { kind: 'dead', code: name };
  if (DEAD.includes(name)) return { kind: 'dead', code: name };
  if (MISCONFIGURED.includes(name) || errors.misconfigured.includes(name))
    return { kind: 'misconfigured', code: name };
  if (TRANSIENT.includes(name)) return { kind: 'later', code: name };
  return { kind: 'malformed', problem: `error ${name} with status ${status}` };
}

function isOutage(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** Reads an answer of the token endpoint. */
export function readTokenAnswer(profile: Profile, redeemed: Redeemed, raw: RawAnswer): TokenAnswer {
  const outer = fieldsOf(raw);
  const good = raw.status === 200 || raw.status === 201;
  if (outer === undefined) {
    if (isOutage(raw.status)) return { kind: 'later', code: `status_${raw.status}` };
    return { kind: 'malformed', problem: `status ${raw.status} without a readable body` };
  }
  const { okMember, tokenType, refreshWithin } = profile.answer;
  if (!good) return judgeError(profile, redeemed, raw.status, outer);
  if (saysError(outer, okMember)) return judgeError(profile, redeemed, 400, outer);
  const elsewhere = redeemed === 'refresh token' && refreshWithin !== undefined;
  const within = elsewhere ? (refreshWithin ?? undefined) : profile.answer.within;
  const inner = within === undefined ? outer : outer[within];
  if (!isObject(inner)) return { kind: 'malformed', problem: `no member "${within ?? ''}"` };
  const named = textOf(inner['token_type']);
  if (tokenType !== undefined && named !== undefined && named.toLowerCase() !== tokenType.toLowerCase()) {
    return { kind: 'malformed', problem: `not a token of the type "${tokenType}"` };
  }
  const accessToken = tokenOf(inner['access_token']);
  if (accessToken === undefined) return { kind: 'malformed', problem: 'no access token' };
  const captured = Object.fromEntries(
    profile.capture.flatMap((name) => {
      const value = textAt(outer, name) ?? textAt(inner, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return {
    kind: 'tokens',
    accessToken,
    // It travels in bodies only: any text will do.
    refreshToken: textOf(inner['refresh_token']),
    scopes: scopesOf(inner),
    expiresInSeconds: expiryOf(inner['expires_in']),
    idToken: textOf(inner['id_token']),
    captured,
  };
}
