/** What can be asked of a person. */

/**
 * `authorize`: sign in at a provider (URL mode). `credential`: give an API key on our own page (URL mode).
 * `form`: a question without secrets, answered in the client (form mode).
 */
export const ELICITATION_KINDS = ['authorize', 'credential', 'form'] as const;

/** One of the kinds above. */
export type ElicitationKind = (typeof ELICITATION_KINDS)[number];

/** The mode that a kind travels in. */
export function modeOf(kind: ElicitationKind): 'url' | 'form' {
  return kind === 'form' ? 'form' : 'url';
}
