/**
 * Answers of token endpoints, as providers really give them, brought to the form of RFC 6749 section 5 before the OAuth
 * library sees them. One function for the code exchange and the refresh. What is not understood fails by name; a token
 * that is not there is never made up. Pure.
 */
import { parseScopes } from '../elicitation/scopes.ts';
import type { Profile } from './profile.ts';

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
];

type Fields = Record<string, unknown>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads the body as JSON or, where a provider sends that, as a form. */
function fieldsOf({ contentType, body }: RawAnswer): Fields | undefined {
  const text = body.replace(/^\uFEFF/, '').trim();
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    const looksLikeForm = contentType.includes('x-www-form-urlencoded') || /^[\w.-]+=[^<>{}]*$/.test(text);
    return looksLikeForm && text.includes('=') ? Object.fromEntries(new URLSearchParams(text)) : undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
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

function judgeError(profile: Profile, status: number, code: string | undefined): TokenAnswer {
  const name = word(code);
  if (status === 429 || status >= 500) {
    // An outage that speaks of a dead grant is still an outage.
    return { kind: 'later', code: name };
  }
  if (profile.errors.transient.includes(name)) return { kind: 'later', code: name };
  if (DEAD.includes(name) || profile.errors.dead.includes(name)) return { kind: 'dead', code: name };
  if (MISCONFIGURED.includes(name)) return { kind: 'misconfigured', code: name };
  if (
    ['temporarily_unavailable', 'server_error', 'slow_down', 'ratelimited', 'rate_limited'].includes(name)
  ) {
    return { kind: 'later', code: name };
  }
  if (name === 'invalid_request') return { kind: 'misconfigured', code: name };
  return { kind: 'malformed', problem: `error ${name} with status ${status}` };
}

/** Reads an answer of the token endpoint. */
export function readTokenAnswer(profile: Profile, raw: RawAnswer): TokenAnswer {
  const outer = fieldsOf(raw);
  const good = raw.status === 200 || raw.status === 201;
  if (outer === undefined) {
    if (raw.status === 429 || raw.status >= 500) return { kind: 'later', code: `status_${raw.status}` };
    return { kind: 'malformed', problem: `status ${raw.status} without a readable body` };
  }
  const { okMember, within } = profile.answer;
  if (!good) return judgeError(profile, raw.status, errorCodeOf(outer));
  if ((okMember !== undefined && outer[okMember] === false) || textOf(outer['error']) !== undefined) {
    return judgeError(profile, 400, errorCodeOf(outer));
  }
  const inner = within === undefined ? outer : outer[within];
  if (!isObject(inner)) return { kind: 'malformed', problem: `no member "${within ?? ''}"` };
  const accessToken = textOf(inner['access_token']);
  if (accessToken === undefined) return { kind: 'malformed', problem: 'no access token' };
  const scope = textOf(inner['scope']);
  const captured = Object.fromEntries(
    profile.capture.flatMap((name) => {
      const value = textOf(outer[name]) ?? textOf(inner[name]);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return {
    kind: 'tokens',
    accessToken,
    refreshToken: textOf(inner['refresh_token']),
    scopes: scope === undefined ? undefined : parseScopes(scope),
    expiresInSeconds: expiryOf(inner['expires_in']),
    idToken: textOf(inner['id_token']),
    captured,
  };
}
