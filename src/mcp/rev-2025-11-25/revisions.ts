/**
 * The revisions of MCP that begin with `initialize`, and in what they differ for this server. Pure. Revisions without
 * a handshake are spoken elsewhere; anything older than the first one here is answered with the latest one (MCP
 * 2025-11-25, basic/lifecycle, "Version Negotiation").
 */
import { NO_MODES, type ElicitationModes } from '../../elicitation/capability.ts';

interface Features {
  /** Task-augmented `tools/call`, `tasks/*`, `execution.taskSupport`. */
  readonly tasks: boolean;
  /** Modes of `elicitation/create` that exist at all. */
  readonly elicitation: ElicitationModes;
  /** JSON-RPC batches. */
  readonly batches: boolean;
}

/** Each revision with what it has. */
export const REVISIONS = {
  '2025-11-25': { tasks: true, elicitation: { form: true, url: true }, batches: false },
  '2025-06-18': { tasks: false, elicitation: { form: true, url: false }, batches: false },
  '2025-03-26': { tasks: false, elicitation: NO_MODES, batches: true },
} as const satisfies Record<string, Features>;

/** One of them. */
export type Revision = keyof typeof REVISIONS;

/** What a client is offered that asks for a revision unknown here. */
export const LATEST: Revision = '2025-11-25';

/** Whether a text names a revision that is spoken here. */
export function isRevision(value: unknown): value is Revision {
  return typeof value === 'string' && Object.hasOwn(REVISIONS, value);
}

/** The revision that a session speaks, from the one that its client asked for. */
export function negotiate(requested: unknown): Revision {
  return isRevision(requested) ? requested : LATEST;
}
