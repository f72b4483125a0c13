/**
 * How many requests one caller may send a minute. Counted here, per process, after it is clear who calls: an address
 * says nothing about a caller behind a gateway.
 */
import { Refusal } from '../errors.ts';

const WINDOW_MS = 60_000;
/** Callers that are counted at a time; the oldest are forgotten first. */
const MOST_CALLERS = 50_000;

/** @returns a check that throws Refusal `too_many_requests` (fact `retryAfterMs`). */
export function callerLimit(perMinute: number, nowMs: () => number): (owner: string) => void {
  const counts = new Map<string, { fromMs: number; many: number }>();
  return (owner) => {
    const now = nowMs();
    const seen = counts.get(owner);
    if (seen === undefined || now - seen.fromMs >= WINDOW_MS) {
      counts.delete(owner);
      if (counts.size >= MOST_CALLERS) {
        const oldest = counts.keys().next();
        if (oldest.done !== true) counts.delete(oldest.value);
      }
      counts.set(owner, { fromMs: now, many: 1 });
      return;
    }
    seen.many += 1;
    if (seen.many <= perMinute) return;
    const retryAfterMs = Math.ceil(WINDOW_MS - (now - seen.fromMs));
    throw new Refusal('too_many_requests', { facts: { retryAfterMs } });
  };
}
