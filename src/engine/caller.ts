/** Who calls, as the access token proves it, and what the call itself declares. */
import type { ElicitationModes } from '../elicitation/capability.ts';

/** The verified caller of an MCP request. */
export interface Caller {
  /** `ownerOf(person)`: issuer and immutable subject (D13). */
  readonly owner: string;
  /** Verified `client_id` of the access token (R11). */
  readonly clientId: string;
  readonly scopes: readonly string[];
}

/** What one request declares about the client that sends it. Decides what that request may be answered. */
export interface Declared {
  /** The tasks extension, or the tasks of 2025-11-25. */
  readonly tasks: boolean;
  readonly modes: ElicitationModes;
  /** Self-reported; decoration, shown as unverified. */
  readonly clientName: string | null;
}
