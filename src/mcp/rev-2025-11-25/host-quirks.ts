/**
 * What hosts are known to do otherwise than they declare, by the name they give themselves. Data with sources, and only
 * what changes an answer here. A quirk may take away what a host declared, never add to it: the name is self-reported.
 */
import type { ElicitationModes } from '../../elicitation/capability.ts';

/** One host. */
export interface HostQuirk {
  /** `clientInfo.name`, exactly. */
  readonly name: string;
  /** It declares forms, and shows nobody one: the question would stay open until the deadline. */
  readonly drawsNoForms: boolean;
  readonly sources: readonly string[];
}

export const HOST_QUIRKS: readonly HostQuirk[] = [
  {
    // Claude Desktop and Cowork.
    name: 'claude-ai',
    drawsNoForms: true,
    sources: [
      'https://github.com/heznpc/AirMCP/pull/46',
      'https://github.com/anthropics/claude-code/issues/88901',
    ],
  },
];

/**
 * The modes that a host can really show. A host that has learnt URL mode since is believed in everything.
 *
 * @param declared what it declared, within its revision.
 */
export function drawnModes(name: string | null, declared: ElicitationModes): ElicitationModes {
  const quirk = HOST_QUIRKS.find((one) => one.name === name);
  if (quirk === undefined || declared.url) return declared;
  return { ...declared, form: declared.form && !quirk.drawsNoForms };
}
