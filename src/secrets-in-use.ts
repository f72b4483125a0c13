/**
 * Knows the secrets in use and replaces them in whatever leaves (D15, R18): texts for clients, checkpoints, log lines.
 * A secret is found by its first eight characters, so that a truncated one is found too.
 */
import { HIDDEN, type Secret } from './secret.ts';

/** Shorter texts are no secrets that a search could tell from words. */
const WINDOW = 8;
/** A JSON Web Token starts like every other: only a longer run of one is telling. */
const JWT_WINDOW = 40;

/** A set of secrets with a search over texts. Bounded: the oldest are forgotten first. */
export class SecretsInUse {
  readonly #byStart = new Map<string, string[]>();
  readonly #order: string[] = [];
  readonly #most: number;

  constructor(most = 5_000) {
    this.#most = most;
  }

  /** Adds a secret, in the spellings that it may be met in. */
  add(secret: Secret): void {
    const plain = secret.reveal();
    for (const text of new Set([plain, encodeURIComponent(plain), JSON.stringify(plain).slice(1, -1)])) {
      if (text.length < WINDOW) continue;
      const start = text.slice(0, WINDOW);
      const same = this.#byStart.get(start);
      if (same?.includes(text) === true) continue;
      if (same === undefined) this.#byStart.set(start, [text]);
      else same.push(text);
      this.#order.push(text);
      if (this.#order.length > this.#most) this.#forget(this.#order.shift() ?? '');
    }
  }

  #forget(text: string): void {
    const start = text.slice(0, WINDOW);
    const rest = (this.#byStart.get(start) ?? []).filter((other) => other !== text);
    if (rest.length === 0) this.#byStart.delete(start);
    else this.#byStart.set(start, rest);
  }

  /** The secrets themselves: for a search that has to prove that they are nowhere. */
  texts(): readonly string[] {
    return this.#order;
  }

  /** Whether a text holds a secret, or eight characters of its beginning. */
  finds(text: string): boolean {
    return this.scrubText(text) !== text;
  }

  /** The text with every secret, or beginning of one, replaced. */
  scrubText(text: string): string {
    if (this.#byStart.size === 0 || text.length < WINDOW) return text;
    if (this.#byStart.size <= 32) {
      // Native search first: nearly always there is nothing to find.
      let any = false;
      for (const start of this.#byStart.keys()) any ||= text.includes(start);
      if (!any) return text;
    }
    let clean = '';
    let from = 0;
    for (let at = 0; at + WINDOW <= text.length;) {
      const run = this.#runAt(text, at);
      if (run === 0) {
        at += 1;
        continue;
      }
      clean += text.slice(from, at) + HIDDEN;
      at += run;
      from = at;
    }
    return from === 0 ? text : clean + text.slice(from);
  }

  /** Length of the longest beginning of a secret that stands at a place, 0 when too short to tell. */
  #runAt(text: string, at: number): number {
    const candidates = this.#byStart.get(text.slice(at, at + WINDOW));
    if (candidates === undefined) return 0;
    let longest = 0;
    for (const candidate of candidates) {
      let length = WINDOW;
      while (length < candidate.length && text[at + length] === candidate[length]) length += 1;
      const telling = candidate.startsWith('eyJ') ? Math.min(JWT_WINDOW, candidate.length) : WINDOW;
      if (length >= telling && length > longest) longest = length;
    }
    return longest;
  }

  /** A JSON value with every secret replaced, in member names as well. The same value when there is none. */
  scrubJson<T>(value: T): T {
    const text = JSON.stringify(value);
    if (text === undefined) return value;
    const clean = this.scrubText(text);
    return clean === text ? value : (JSON.parse(clean) as T);
  }
}
