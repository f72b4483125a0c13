/** Whether a connection gives what was asked for. Pure; the same rule decides stops, wakes and redemptions. */
import { coversScopes } from '../elicitation/scopes.ts';
import type { Connection } from './records.ts';

/** The part of a need that a connection can satisfy. */
export interface AccessNeed {
  readonly scopes: readonly string[];
  /** The generation that was judged dead or too narrow; it does not satisfy, a newer one may. */
  readonly judgedGeneration: number | null;
}

/**
 * @param approved whether the person has agreed that this client uses the connection (R11).
 */
export function satisfies(connection: Connection, need: AccessNeed, approved: boolean): boolean {
  return (
    approved &&
    connection.status === 'active' &&
    connection.record !== null &&
    (need.judgedGeneration === null || connection.generation !== need.judgedGeneration) &&
    coversScopes(connection.record.scopes, need.scopes)
  );
}
