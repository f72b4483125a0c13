/** When a link is issued again (D4). Pure. */

/** At most this many further links in one wait. */
export const MOST_REASKS = 2;

/**
 * When the next link is due: once half of what remained at the last accept has passed.
 *
 * @returns the instant, or undefined when no further link may be issued.
 */
export function reaskAtMs(inputs: {
  acceptedAtMs: number;
  deadlineMs: number;
  reasks: number;
}): number | undefined {
  if (inputs.reasks >= MOST_REASKS) return undefined;
  const atMs = inputs.acceptedAtMs + Math.ceil((inputs.deadlineMs - inputs.acceptedAtMs) / 2);
  return atMs < inputs.deadlineMs ? atMs : undefined;
}
