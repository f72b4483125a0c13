/**
 * The authorization response (RFC 6749 section 4.1.2, RFC 9207), checked before anything is sent anywhere. Pure; the
 * order of checks is the order below.
 */
import { Refusal } from '../errors.ts';
import type { Profile } from './profile.ts';

/** A response that passed. */
export type ResponseCheck =
  /** The code exactly as issued: decoded once. */
  | { readonly kind: 'code'; readonly code: string }
  | {
      readonly kind: 'error';
      readonly error: string;
      /** `denied`: by the person. `misconfigured`: the operator's matter. `temporary`: try again. */
      readonly verdict: 'denied' | 'misconfigured' | 'temporary';
    };

const MISCONFIGURED = [
  'invalid_request',
  'unauthorized_client',
  'unsupported_response_type',
  'invalid_scope',
  'invalid_client',
  'redirect_uri_mismatch',
];

/**
 * Checks a response.
 *
 * @param expected.advertised whether the provider's metadata promises `iss`.
 * @throws Refusal `state_repeated`, `issuer_mismatch`, `response_malformed`.
 */
export function checkAuthorizationResponse(
  profile: Profile,
  query: URLSearchParams,
  expected: { issuer: string; advertised: boolean },
): ResponseCheck {
  // 1. Nothing that counts is repeated.
  for (const name of ['code', 'state', 'iss', 'error']) {
    if (query.getAll(name).length > 1) throw new Refusal('state_repeated', { facts: { parameter: name } });
  }
  // 2. The issuer is the one that was asked: exactly, without any normalising.
  const issuer = query.get('iss');
  if (issuer !== null && issuer !== expected.issuer) throw new Refusal('issuer_mismatch');
  if (issuer === null && (expected.advertised || profile.responseIssuer === 'required')) {
    throw new Refusal('issuer_mismatch', { facts: { missing: true } });
  }
  // 3. An error, or a code: not neither.
  const error = query.get('error');
  if (error !== null) {
    const name = /^[\w.-]{1,64}$/.test(error) ? error : 'unnamed';
    const verdict =
      name === 'access_denied' ? 'denied' : MISCONFIGURED.includes(name) ? 'misconfigured' : 'temporary';
    return { kind: 'error', error: name, verdict };
  }
  const code = query.get('code');
  if (code === null || code === '') throw new Refusal('response_malformed');
  return { kind: 'code', code };
}
