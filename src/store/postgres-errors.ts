/**
 * Names what PostgreSQL and the way to it report. Trouble that a later try may find gone is `store_unavailable`; what a
 * transaction may be run again for is told apart; whatever a statement of ours got wrong stays a bug.
 */
import { DatabaseError } from 'pg';
import { Refusal } from '../errors.ts';

/** Serialization failure and deadlock: rolled back for certain, so the transaction may be run again. */
const AGAIN = new Set(['40001', '40P01']);

/**
 * SQLSTATE classes and codes of a server that cannot serve now: connection (08), authorization (28), no such database
 * (3D), resources (53), operator intervention (57), system (58), and single codes for a lock or an idle transaction
 * that took too long, and for a standby that only reads.
 */
const UNAVAILABLE = ['08', '28', '3D', '53', '57', '58', '55P03', '25P03', '25006'];

/** Damaged pages and indexes (class XX beyond plain internal errors). */
const CORRUPT = ['XX001', 'XX002'];

/** Whether the transaction was rolled back for a reason that may be gone the next time. */
export function mayRunAgain(error: unknown): boolean {
  return error instanceof DatabaseError && AGAIN.has(error.code ?? '');
}

/** The refusal that an error amounts to: what did not come from the server itself is trouble on the way to it. */
export function named(error: unknown): unknown {
  if (error instanceof Refusal || error instanceof TypeError || mayRunAgain(error)) return error;
  if (!(error instanceof DatabaseError)) return new Refusal('store_unavailable', { cause: error });
  const code = error.code ?? '';
  if (CORRUPT.includes(code)) return new Refusal('store_corrupt', { cause: error });
  if (UNAVAILABLE.some((prefix) => code.startsWith(prefix))) {
    return new Refusal('store_unavailable', { cause: error, facts: { sqlstate: code } });
  }
  return error;
}
