/** How a token stands in the header of an API request. Always `Bearer` unless the profile says otherwise. */
import { Refusal } from '../errors.ts';
import type { Profile } from './profile.ts';
import type { TokenSet } from './token-set.ts';

/**
 * Sets the header.
 *
 * @throws Refusal `answer_malformed` for a token that cannot stand in a header: the platform's own error
 *   would quote it.
 */
export function authorize(headers: Headers, profile: Profile, tokens: TokenSet): void {
  const { scheme, header, basicUser } = profile.api;
  const token = tokens.accessToken.reveal();
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Refusal('answer_malformed', { facts: { problem: 'token' } });
  if (basicUser !== undefined) {
    const user = basicUser.replace(/\{(\w+)\}/g, (_, name: string) => tokens.captured[name] ?? '');
    headers.set(header, `Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`);
    return;
  }
  headers.set(header, scheme === '' ? token : `${scheme} ${token}`);
}
