/**
 * Strings that somebody else chose (names, titles, account labels), made fit to be shown in a sentence of
 * ours.
 *
 * Nothing invisible survives, a right-to-left name cannot reorder the words around it, and a very long one
 * cannot push our own words off the page. It does not judge look-alike letters: what is unverified is marked
 * as such.
 */

declare const brand: unique symbol;

/** A string that went through `shown`. The texts of the pages take only such strings as names. */
export type Shown = string & { readonly [brand]: true };

/** Longest host name of DNS (RFC 1035, section 2.3.4): a host is never cut, since its end is what counts. */
export const HOST_LENGTH = 253;

const INVISIBLE = /[[\p{Cc}\p{Cf}\p{DI}\u2800]--[\u200C-\u200D\p{VS}]]/gv;
/** Blocks of scripts that run from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/**
 * Cleans a foreign string.
 *
 * @param value what somebody else chose
 * @param maxLength in characters as a person counts them; the rest becomes an ellipsis
 * @returns the string, between isolates (U+2068, U+2069) if it runs from right to left; `?` if nothing is
 * left
 */
export function shown(value: string, maxLength = 80): Shown {
  // Bounded before anything costly: sixteen code units hold every grapheme that is not a heap of marks.
  const raw = value.slice(0, maxLength * 16).toWellFormed();
  const clean = raw
    .replace(/\s+/gu, ' ')
    .replace(INVISIBLE, '')
    .replace(/(\p{M}{4})\p{M}+/gu, '$1')
    .replace(/ {2,}/g, ' ')
    .trim();
  let short = '';
  let count = 0;
  for (const { segment } of graphemes.segment(clean)) {
    count += 1;
    if (count > maxLength) break;
    short += segment;
  }
  if (count > maxLength || value.length > raw.length) short = `${short.trimEnd()}…`;
  // Joiners and selectors alone leave nothing to see.
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(short)) short = '?';
  return (RIGHT_TO_LEFT.test(short) ? `\u2068${short}\u2069` : short) as Shown;
}
