/** What an answer of a provider's API says about the access it was asked with. Pure. */
import type { Profile, Signal } from './profile.ts';

/** An answer, reduced to what tells. */
export interface ApiAnswer {
  readonly status: number;
  readonly challenge: string;
  readonly retryAfter: string | null;
  /** The beginning of the body, where the profile wants to look at it. */
  readonly body: string;
}

/** What it says. */
export type Judgement = 'ok' | 'expired' | 'insufficient' | 'limited' | 'unavailable';

function holds(signal: Signal, answer: ApiAnswer): boolean {
  if (signal.status !== undefined && !signal.status.includes(answer.status)) return false;
  if (signal.bodyHas !== undefined && !signal.bodyHas.some((text) => answer.body.includes(text)))
    return false;
  return (
    signal.challengeHas === undefined || signal.challengeHas.some((text) => answer.challenge.includes(text))
  );
}

/** Whether the profile has to see the body of an answer with this status. */
export function wantsBody(profile: Profile, status: number): boolean {
  const { expiredWhen, insufficientWhen, limitedWhen } = profile.api;
  return [...expiredWhen, ...insufficientWhen, ...limitedWhen].some(
    (signal) =>
      signal.bodyHas !== undefined && (signal.status === undefined || signal.status.includes(status)),
  );
}

/** Judges an answer. The narrower signal first: some providers answer a missing scope with 401. */
export function judgeApiAnswer(profile: Profile, answer: ApiAnswer): Judgement {
  const { api } = profile;
  if (api.limitedWhen.some((signal) => holds(signal, answer))) return 'limited';
  if (api.insufficientWhen.some((signal) => holds(signal, answer))) return 'insufficient';
  if (api.expiredWhen.some((signal) => holds(signal, answer))) return 'expired';
  return [502, 503, 504].includes(answer.status) ? 'unavailable' : 'ok';
}

/** Scopes that a challenge names (RFC 6750 section 3). */
export function challengedScopes(challenge: string): string[] {
  const named = /\bscope="([^"]*)"/.exec(challenge)?.[1];
  return named === undefined ? [] : named.split(' ').filter((scope) => scope !== '');
}

/**
 * How long a provider asks to wait: `Retry-After` in seconds or as a date (RFC 9110 section 10.2.3).
 *
 * @returns milliseconds, at most a day; undefined when it says nothing that makes sense.
 */
export function retryAfterMs(header: string | null, wallMs: number): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : Date.parse(header) - wallMs;
  return Number.isFinite(ms) && ms >= 0 ? Math.min(ms, 86_400_000) : undefined;
}
