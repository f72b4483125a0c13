/**
 * A provider's API as jobs get it, and the only place where a token meets a request: exact origins (R16), no redirect
 * off them, one renewal and one retry after an answer that says *expired* (D12).
 */
import { Refusal } from '../errors.ts';
import type { Secret } from '../secret.ts';
import { challengedScopes, judgeApiAnswer, retryAfterMs, wantsBody, type Judgement } from './api-answer.ts';
import type { Provider } from './client.ts';
import type { Egress } from './egress.ts';
import type { TokenSet } from './token-set.ts';

/** Where tokens come from at the moment of a request. */
export interface TokenSource {
  current(): Promise<LiveToken>;
  /** After an answer that a generation is dead. */
  renew(generation: number): Promise<LiveToken>;
}

/** A token that is good now. */
export interface LiveToken {
  readonly token: Secret;
  readonly tokens: TokenSet;
  readonly generation: number;
}

/** The API of one connection. */
export interface BoundApi {
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
}

const MOST_REDIRECTS = 5;
/** How much of a body is looked at. */
const SNIPPET = 4_096;

export function bindApi(options: {
  provider: Provider;
  egress: Egress;
  tokenSource: TokenSource;
  signal: AbortSignal;
}): BoundApi {
  const { provider, egress, tokenSource, signal } = options;
  const profile = provider.settings;
  const { api } = profile;

  /** Exact origins of this connection: `{name}` comes from what was captured at the sign-in. */
  function originsOf(tokens: TokenSet): Set<string> {
    return new Set(
      api.origins.map((origin) => {
        const filled = origin.replace(/\{(\w+)\}/g, (_, name: string) => tokens.captured[name] ?? '');
        try {
          return new URL(filled).origin;
        } catch {
          throw new Refusal('egress_forbidden', {
            facts: { provider: provider.id, why: 'origin is not known' },
          });
        }
      }),
    );
  }

  function checkOrigin(url: URL, tokens: TokenSet): void {
    if (!originsOf(tokens).has(url.origin)) {
      throw new Refusal('egress_forbidden', { facts: { provider: provider.id, origin: url.origin } });
    }
  }

  async function send(url: URL, init: RequestInit, live: LiveToken): Promise<Response> {
    let target = url;
    for (let hops = 0; ; hops += 1) {
      checkOrigin(target, live.tokens);
      const headers = new Headers(init.headers);
      for (const [name, value] of Object.entries(api.headers)) headers.set(name, value);
      if (!headers.has('user-agent')) headers.set('user-agent', 'keyturn');
      headers.set(api.header, `${api.scheme} ${live.token.reveal()}`.trim());
      const signals = init.signal == null ? signal : AbortSignal.any([signal, init.signal]);
      const response = await egress.fetch(target, { ...init, headers, signal: signals });
      const location = response.headers.get('location');
      const moved = [301, 302, 303, 307, 308].includes(response.status) && location !== null;
      if (!moved) return response;
      const next = new URL(location, target);
      await response.body?.cancel();
      // Only a plain read goes on by itself, and only where the token may go.
      if (hops >= MOST_REDIRECTS || (init.method ?? 'GET') !== 'GET') {
        throw new Refusal('resource_refused', { facts: { provider: provider.id, status: response.status } });
      }
      target = next;
    }
  }

  async function judge(response: Response): Promise<{ verdict: Judgement; response: Response }> {
    const challenge = response.headers.get('www-authenticate') ?? '';
    const retryAfter = response.headers.get('retry-after');
    if (!wantsBody(profile, response.status)) {
      return {
        verdict: judgeApiAnswer(profile, { status: response.status, challenge, retryAfter, body: '' }),
        response,
      };
    }
    const text = await response.text();
    const body = text.slice(0, SNIPPET);
    return {
      verdict: judgeApiAnswer(profile, { status: response.status, challenge, retryAfter, body }),
      response: new Response([204, 205, 304].includes(response.status) ? null : text, {
        status: response.status,
        headers: [...response.headers].filter(([name]) => !/^content-(?:encoding|length)$/.test(name)),
      }),
    };
  }

  return {
    /**
     * @throws Refusal `egress_forbidden`, `connection_needs_sign_in` (facts `generation`, `judgedBy: 'api'` after a
     *   second refusal), `insufficient_scope` (facts `generation`, `scopes`), `provider_unavailable`.
     */
    async fetch(target, init = {}) {
      const url = new URL(target);
      if (init.body instanceof ReadableStream)
        throw new TypeError('a body that can be read once cannot be retried');
      let live = await tokenSource.current();
      // Before anything is asked for: a foreign address never costs a refresh.
      checkOrigin(url, live.tokens);
      for (let tries = 0; ; tries += 1) {
        const { verdict, response } = await judge(await send(url, init, live));
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
            const challenge = response.headers.get('www-authenticate') ?? '';
            await response.body?.cancel();
            throw new Refusal('insufficient_scope', {
              facts: { ...facts, scopes: challengedScopes(challenge) },
            });
          }
          case 'limited':
          case 'unavailable': {
            const ms = retryAfterMs(response.headers.get('retry-after'), Date.now());
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
