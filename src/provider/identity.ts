/**
 * Whose tokens these are at the provider: asked at its identity endpoint, or known from the sign-in. The
 * answer is judged like any other of the API, so that a limit or an outage never passes for a dead grant.
 */
import { Refusal } from '../errors.ts';
import { judgeApiAnswer, waitMs } from './api-answer.ts';
import { parseJson, textAt } from './answer-path.ts';
import { authorize } from './authorization-header.ts';
import { addressOf } from './connection-values.ts';
import type { Egress } from './egress.ts';
import type { Profile } from './profile.ts';
import type { TokenSet } from './token-set.ts';

/** Who the tokens belong to at the provider. */
export interface Identity {
  /** Immutable account id. */
  readonly subject: string;
  readonly label?: string | undefined;
}

/**
 * Whose tokens these are, or undefined when the provider has no place to ask.
 *
 * @throws Refusal `grant_dead`, `provider_unavailable` (facts `sent`, `status`, `retryAfterMs`),
 *   `answer_malformed`.
 */
export async function identify(
  profile: Profile,
  tokens: TokenSet,
  egress: Egress,
  wallMs: number,
): Promise<Identity | undefined> {
  const { identity, api } = profile;
  if (identity === undefined) return undefined;
  const request = 'captured' in identity ? { url: identity.probe, method: 'GET', body: undefined } : identity;
  const headers = new Headers({ accept: 'application/json', 'user-agent': 'keyturn', ...api.headers });
  if (request.body !== undefined) headers.set('content-type', 'application/json');
  authorize(headers, profile, tokens);
  const answer = await egress.fetch(addressOf(request.url, tokens.captured), {
    method: request.method,
    headers,
    ...(request.body === undefined ? {} : { body: request.body }),
  });
  const { status } = answer;
  const body = await answer.text();
  const challenge = answer.headers.get('www-authenticate') ?? '';
  const verdict = judgeApiAnswer(profile, { status, challenge, body });
  if (verdict === 'limited' || verdict === 'unavailable' || status >= 500) {
    const retryAfterMs = waitMs(profile, answer.headers, wallMs);
    throw new Refusal('provider_unavailable', {
      facts: { sent: true, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
    });
  }
  if (verdict === 'expired' || status === 401 || status === 403) {
    throw new Refusal('grant_dead', { facts: { status } });
  }
  if (!answer.ok || verdict !== 'ok')
    throw new Refusal('answer_malformed', { facts: { problem: 'identity' } });
  const parsed = parseJson(body);
  const said = (name: string) => ('captured' in identity ? tokens.captured[name] : textAt(parsed, name));
  const names = 'captured' in identity ? identity.captured : [identity.subject].flat();
  const parts = names.map(said);
  if (parts.includes(undefined)) throw new Refusal('answer_malformed', { facts: { problem: 'identity' } });
  const label = identity.label === undefined ? undefined : said(identity.label);
  return { subject: parts.join(':'), ...(label === undefined ? {} : { label }) };
}
