/**
 * The authorization response (RFC 6749 section 4.1.2, RFC 9207), checked before anything is sent anywhere.
 * Pure; the order of checks is the order below.
 */
import { Refusal } from '../errors.ts';
import type { Secret } from '../secret.ts';
import type { Profile } from './profile.ts';
import { isSigned } from './response-signature.ts';

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
 * @param expected.clientSecret what a signed response is signed with.
 * @throws Refusal `state_repeated`, `issuer_mismatch`, `response_malformed`.
 */
export function checkAuthorizationResponse(
  profile: Profile,
  query: URLSearchParams,
  expected: { issuer: string; advertised: boolean; clientSecret: Secret | null },
): ResponseCheck {
  // 1. Nothing that counts is repeated.
  const counts = ['code', 'state', 'iss', 'error', 'hmac'];
  counts.push(...Object.keys(profile.responseParameters), ...profile.captureFromResponse);
  for (const name of counts) {
    if (query.getAll(name).length > 1) throw new Refusal('state_repeated', { facts: { parameter: name } });
  }
  // 2. The issuer is the one that was asked: exactly, without any normalising.
  const issuer = query.get('iss');
  if (issuer !== null && issuer !== expected.issuer) throw new Refusal('issuer_mismatch');
  if (issuer === null && (expected.advertised || profile.responseIssuer === 'required')) {
    throw new Refusal('issuer_mismatch', { facts: { missing: true } });
  }
  // 3. The tenant is the one that was asked (R16), and the signature, where there is one, is right.
  for (const [name, value] of Object.entries(profile.responseParameters)) {
    const given = query.get(name);
    const missing = given === null && query.has('error');
    if (given !== value && !missing) throw new Refusal('issuer_mismatch', { facts: { parameter: name } });
  }
  if (profile.responseSignature !== undefined && (query.has('code') || query.has('hmac'))) {
    const { clientSecret } = expected;
    if (clientSecret === null || !isSigned(query, clientSecret)) {
      throw new Refusal('issuer_mismatch', { facts: { parameter: 'hmac' } });
    }
  }
  // 4. An error, or a code: not neither.
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
