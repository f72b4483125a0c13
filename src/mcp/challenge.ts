/**
 * What a refused caller is told (RFC 6750 section 3, RFC 9728 section 5.1): where the metadata of this resource is, which
 * scopes are needed, what was wrong. Pure.
 */
import type { Refusal } from '../errors.ts';

/** What every challenge of a resource says. */
export interface ChallengeTerms {
  /** URL of the protected resource metadata. */
  readonly resourceMetadata: string;
  readonly scopes: readonly string[];
}

/** A refusal of the bearer as an HTTP answer. */
export interface Challenge {
  readonly status: 401 | 403;
  readonly wwwAuthenticate: string;
  /** As OAuth errors are written, for clients that show bodies. */
  readonly body: { readonly error: string; readonly error_description: string };
}

/** Builds the answer to `token_missing`, `token_invalid` and `token_scope`. */
export function challenge(refusal: Refusal, terms: ChallengeTerms): Challenge {
  const words: string[] = [];
  const add = (name: string, value: string): void => {
    // Quotes and backslashes are not part of any of these values (RFC 6750, 3).
    words.push(`${name}="${value.replace(/[^\x20-\x7e]|["\\]/g, '')}"`);
  };
  // Without any token there is no error to speak of (RFC 6750, 3.1).
  const error =
    refusal.reason === 'token_scope'
      ? 'insufficient_scope'
      : refusal.reason === 'token_invalid'
        ? 'invalid_token'
        : undefined;
  if (error !== undefined) {
    add('error', error);
    add('error_description', refusal.message);
  }
  if (terms.scopes.length > 0) add('scope', terms.scopes.join(' '));
  add('resource_metadata', terms.resourceMetadata);
  return {
    status: error === 'insufficient_scope' ? 403 : 401,
    wwwAuthenticate: `Bearer ${words.join(', ')}`,
    body: { error: error ?? 'invalid_request', error_description: refusal.message },
  };
}
