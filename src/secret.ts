/**
 * Secrets are values that cannot print themselves: string conversion, JSON, `util.inspect` and structured logs all
 * show a fixed mark. Only `reveal()` gives the text, so that a search for it lists every place that touches one.
 */
import { timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

/** What stands where a secret would have been printed. */
export const HIDDEN = '[secret]';

/** A credential in memory. It has no enumerable state and equals nothing by accident. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    Object.freeze(this);
  }

  /** The text itself. Call it only where the secret meets its use: a request, a seal, a comparison. */
  reveal(): string {
    return this.#text;
  }

  /** Compares in constant time for equal lengths. */
  equals(other: Secret): boolean {
    const a = Buffer.from(this.#text);
    const b = Buffer.from(other.#text);
    return a.length === b.length && timingSafeEqual(a, b);
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [Symbol.toPrimitive](): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}

/** Wraps a text as a secret. */
export function secret(text: string): Secret {
  return new Secret(text);
}
