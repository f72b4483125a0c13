/**
 * The end of tokens at the provider: RFC 7009, or what the provider has instead. Whether one may be ended at
 * all is decided by who asks (R5); here it is only said. Errors carry neither a token nor a text of the
 * provider.
 */
import { Refusal } from '../errors.ts';
import { memberAt, parseJson } from './answer-path.ts';
import { clientAuthentication, rawBasic, type Registration } from './client-authentication.ts';
import { addressOf } from './connection-values.ts';
import type { Egress } from './egress.ts';
import type { TokenSet } from './token-set.ts';

/**
 * Ends tokens.
 *
 * @returns `unsupported` when the provider has no way to.
 * @throws Refusal `provider_unavailable` (facts `sent`, `status`) when it did not.
 */
export async function revokeTokens(
  registration: Registration,
  tokens: TokenSet,
  egress: Egress,
): Promise<'revoked' | 'unsupported'> {
  const { profile, clientId } = registration;
  const { revocation } = profile;
  if (revocation === undefined) return 'unsupported';
  const named = revocation.token === 'refresh' ? tokens.refreshToken : undefined;
  const token = (named ?? tokens.accessToken).reveal();
  const url = new URL(addressOf(revocation.endpoint, { ...tokens.captured, client_id: clientId }));
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'keyturn' });
  let body: string | URLSearchParams | undefined;
  switch (revocation.kind) {
    case 'bearer':
      headers.set('authorization', `Bearer ${tokens.accessToken.reveal()}`);
      break;
    case 'json':
      headers.set('authorization', rawBasic(registration));
      headers.set('content-type', 'application/json');
      body = JSON.stringify({ [revocation.member]: token });
      break;
    case 'rfc7009': {
      body = new URLSearchParams({ token });
      const hint = named === undefined ? 'access_token' : 'refresh_token';
      body.set('token_type_hint', hint);
      const issuer = profile.issuer ?? url.origin;
      // Declared as plain, but a signature takes time.
      const proof: unknown = clientAuthentication(registration)(
        { issuer },
        { client_id: clientId },
        body,
        headers,
      );
      await proof;
    }
  }
  const answer = await egress.fetch(url, { method: revocation.method, headers, ...(body && { body }) });
  const text = await answer.text();
  const { okMember } = profile.answer;
  const said = okMember === undefined ? undefined : memberAt(parseJson(text), okMember);
  // What cannot be deleted because it is not there is as good as deleted.
  const gone = revocation.method === 'DELETE' && answer.status === 404;
  if ((answer.ok || gone) && said !== false) return 'revoked';
  throw new Refusal('provider_unavailable', {
    facts: { provider: registration.id, sent: true, status: answer.status },
  });
}
