/**
 * Other ways for a link than URL mode elicitation (D9): off unless the operator allows them, for every client or for
 * some by name. The name is self-reported; that is enough, because the link authenticates its visitor. Pure.
 */
import type { InputRequest } from '../engine/tasks.ts';

/** The operator's rule. */
export interface Delivery {
  /** Links as text in tool results and status messages: for nobody, everybody, or clients of these names. */
  readonly textLink: boolean | readonly string[];
}

/** What is used where the configuration says nothing. */
export const NO_DELIVERY: Delivery = { textLink: false };

/** Whether a client may be given links as text. */
export function textLinkAllowed(delivery: Delivery, clientName: string | null): boolean {
  const { textLink } = delivery;
  if (typeof textLink === 'boolean') return textLink;
  return clientName !== null && textLink.includes(clientName);
}

/** Links as text, each with its question. */
export function linkLines(links: readonly InputRequest[]): string {
  return links.map((link) => `${link.message}\nShow this link to the person: ${link.url}`).join('\n\n');
}
