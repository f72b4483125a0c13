/** What an answer of a provider's API says about the access it was asked with. Pure. */
import { parseScopes } from '../elicitation/scopes.ts';
import { memberAt, parseJson, textAt } from './answer-path.ts';
import type { Profile, Signal } from './profile.ts';

/** How much of a body is searched for words. */
const SNIPPET = 4_096;

/** An answer, reduced to what tells. */
export interface ApiAnswer {
  readonly status: number;
  /** `WWW-Authenticate`. */
  readonly challenge: string;
  /** The body, where the profile wants to look at it; empty otherwise. */
  readonly body: string;
}

/** What it says. */
export type Judgement = 'ok' | 'expired' | 'insufficient' | 'limited' | 'unavailable';

function holds(signal: Signal, answer: ApiAnswer, json: unknown): boolean {
  const { status, bodyHas, challengeHas, members } = signal;
  if (status !== undefined && !status.includes(answer.status)) return false;
  if (challengeHas !== undefined && !challengeHas.some((text) => answer.challenge.includes(text)))
    return false;
  if (bodyHas !== undefined) {
    const beginning = answer.body.slice(0, SNIPPET);
    if (!bodyHas.some((text) => beginning.includes(text))) return false;
  }
  return Object.entries(members ?? {}).every(([path, values]) => {
    const member = memberAt(json, path);
    const isPlain = typeof member === 'string' || typeof member === 'number' || typeof member === 'boolean';
    return isPlain && values.includes(String(member));
  });
}

/** Whether the profile has to see the body of an answer with this status. */
export function wantsBody(profile: Profile, status: number): boolean {
  const { expiredWhen, insufficientWhen, limitedWhen } = profile.api;
  return [...expiredWhen, ...insufficientWhen, ...limitedWhen].some(
    (signal) =>
      (signal.bodyHas !== undefined || signal.members !== undefined) &&
      (signal.status === undefined || signal.status.includes(status)),
  );
}

/**
 * Judges an answer. The narrower signal first: some providers answer a limit or a missing scope with 401 or
 * 403.
 */
export function judgeApiAnswer(profile: Profile, answer: ApiAnswer): Judgement {
  const { expiredWhen, insufficientWhen, limitedWhen } = profile.api;
  const json = wantsBody(profile, answer.status) ? parseJson(answer.body) : undefined;
  const some = (signals: readonly Signal[]) => signals.some((signal) => holds(signal, answer, json));
  if (some(limitedWhen)) return 'limited';
  if (some(insufficientWhen)) return 'insufficient';
  if (some(expiredWhen)) return 'expired';
  return [502, 503, 504].includes(answer.status) ? 'unavailable' : 'ok';
}

/**
 * How long to wait after an answer that says *limited* or *unavailable*: what the provider asks for, else
 * what its profile knows.
 *
 * @returns milliseconds, at most a day; undefined when nothing says.
 */
export function waitMs(profile: Profile, headers: Headers, wallMs: number): number | undefined {
  const asked = retryAfterMs(headers.get('retry-after'), wallMs);
  if (asked !== undefined) return asked;
  const { resetHeader, resetAs, waitMs: known } = profile.api.limit;
  const reset = resetHeader === undefined ? null : headers.get(resetHeader);
  if (reset === null) return known;
  const ms = {
    'epoch-seconds': () => Number(reset) * 1_000 - wallMs,
    seconds: () => Number(reset) * 1_000,
    date: () => Date.parse(reset) - wallMs,
  }[resetAs]();
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), 86_400_000) : known;
}

/**
 * Scopes that an answer names as missing: in its challenge (RFC 6750 section 3), or where the profile knows.
 */
export function neededScopes(profile: Profile, answer: ApiAnswer): string[] {
  const challenged = /\bscope="([^"]*)"/.exec(answer.challenge)?.[1];
  const { neededScopes: path } = profile.api;
  const named = challenged ?? (path === undefined ? undefined : textAt(parseJson(answer.body), path)) ?? '';
  return parseScopes(named).filter((scope) => /^[\x21-\x7e]{1,200}$/.test(scope));
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
