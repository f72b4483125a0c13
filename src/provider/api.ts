/**
 * A provider's API as jobs get it. A token meets a job's request here and nowhere else: exact origins (R16),
 * no redirect off them, one renewal and one retry after an answer that says *expired* (D12).
 */
import { Refusal } from '../errors.ts';
import {
  judgeApiAnswer,
  neededScopes,
  waitMs,
  wantsBody,
  type ApiAnswer,
  type Judgement,
} from './api-answer.ts';
import { authorize } from './authorization-header.ts';
import type { Provider } from './client.ts';
import { addressOf, originOf } from './connection-values.ts';
import { at, type Egress } from './egress.ts';
import { nextPage } from './pagination.ts';
import type { TokenSet } from './token-set.ts';

/** Where tokens come from at the moment of a request. */
export interface TokenSource {
  current(): Promise<LiveToken>;
  /** After an answer that a generation is dead. */
  renew(generation: number): Promise<LiveToken>;
}

/** Tokens that are good now. */
export interface LiveToken {
  readonly tokens: TokenSet;
  readonly generation: number;
}

/** The API of one connection. */
export interface BoundApi {
  /** `{name}` in a text is a value captured at the sign-in: `https://api.example/company/{realmId}`. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /**
   * The address of the page after, as this provider tells it, or undefined at the end.
   *
   * @throws Refusal `egress_forbidden` when it lies elsewhere than the page that was read (R16).
   */
  readonly nextPage: (answer: Response, body: unknown) => string | undefined;
}

const MOST_REDIRECTS = 5;

export function bindApi(options: {
  provider: Provider;
  egress: Egress;
  tokenSource: TokenSource;
  signal: AbortSignal;
  /** Wall clock, for dates in `Retry-After`. */
  wallMs: () => number;
}): BoundApi {
  const { provider, egress, tokenSource, signal, wallMs } = options;
  const profile = provider.settings;
  const { api } = profile;

  /** Before the token is added: only exact origins of this connection (R16). */
  function checkOrigin(url: URL, tokens: TokenSet): void {
    const known = api.origins.some((template) => originOf(template, tokens.captured) === url.origin);
    if (!known || url.username !== '' || url.password !== '') {
      throw new Refusal('egress_forbidden', { facts: { provider: provider.id, origin: url.origin } });
    }
  }

  async function send(url: URL, init: RequestInit, live: LiveToken): Promise<Response> {
    let target = url;
    for (let hops = 0; ; hops += 1) {
      checkOrigin(target, live.tokens);
      const headers = new Headers(init.headers);
      for (const [name, value] of Object.entries(api.headers)) headers.set(name, value);
      // The host is the one that was checked.
      headers.delete('host');
      if (!headers.has('user-agent')) headers.set('user-agent', 'keyturn');
      authorize(headers, profile, live.tokens);
      const signals = init.signal == null ? signal : AbortSignal.any([signal, init.signal]);
      const response = await egress.fetch(target, { ...init, headers, signal: signals });
      const location = response.headers.get('location');
      const moved = [301, 302, 303, 307, 308].includes(response.status) && location !== null;
      if (!moved) return response;
      const next = URL.parse(location, target.href);
      await response.body?.cancel();
      // Only a plain read goes on by itself, and only where the token may go.
      if (next === null || hops >= MOST_REDIRECTS || (init.method ?? 'GET') !== 'GET') {
        throw new Refusal('resource_refused', { facts: { provider: provider.id, status: response.status } });
      }
      target = next;
    }
  }

  async function judge(
    response: Response,
  ): Promise<{ verdict: Judgement; answer: ApiAnswer; response: Response }> {
    const { status, headers } = response;
    const challenge = headers.get('www-authenticate') ?? '';
    if (!wantsBody(profile, status)) {
      const answer = { status, challenge, body: '' };
      return { verdict: judgeApiAnswer(profile, answer), answer, response };
    }
    const answer = { status, challenge, body: await response.text() };
    const again = new Response([204, 205, 304].includes(status) ? null : answer.body, {
      status,
      statusText: response.statusText,
      headers: [...headers].filter(([name]) => !/^content-(?:encoding|length)$/.test(name)),
    });
    return { verdict: judgeApiAnswer(profile, answer), answer, response: at(response.url, again) };
  }

  return {
    nextPage: (answer, body) => nextPage(api.pagination, { url: answer.url, headers: answer.headers, body }),

    /**
     * @throws Refusal `egress_forbidden`, `connection_needs_sign_in` (facts `generation`, `judgedBy: 'api'`
     *   after a second refusal), `insufficient_scope` (facts `generation`, `scopes`), `provider_unavailable`.
     */
    async fetch(target, init = {}) {
      if (init.body instanceof ReadableStream)
        throw new TypeError('a body that can be read once cannot be retried');
      let live = await tokenSource.current();
      const url = new URL(typeof target === 'string' ? addressOf(target, live.tokens.captured) : target);
      // Before anything is asked for: a foreign address never costs a refresh.
      checkOrigin(url, live.tokens);
      for (let tries = 0; ; tries += 1) {
        const { verdict, answer, response } = await judge(await send(url, init, live));
        const facts = { provider: provider.id, generation: live.generation };
        switch (verdict) {
          case 'ok':
            return response;
          case 'expired':
            await response.body?.cancel();
            if (tries > 0) {
              throw new Refusal('connection_needs_sign_in', { facts: { ...facts, judgedBy: 'api' } });
            }
            live = await tokenSource.renew(live.generation);
            continue;
          case 'insufficient': {
            await response.body?.cancel();
            throw new Refusal('insufficient_scope', {
              facts: { ...facts, scopes: neededScopes(profile, answer) },
            });
          }
          case 'limited':
          case 'unavailable': {
            const ms = waitMs(profile, response.headers, wallMs());
            await response.body?.cancel();
            throw new Refusal('provider_unavailable', {
              facts: {
                provider: provider.id,
                sent: true,
                status: response.status,
                ...(ms === undefined ? {} : { retryAfterMs: ms }),
              },
            });
          }
        }
      }
    },
  };
}
