/**
 * The ledger: tasks, questions, attempts, connections and the audit log, on one SQL engine. Every write is
 * conditional, and durable before its promise resolves. It holds no secret.
 */
import { attemptLedger } from './attempts.ts';
import { auditLog } from './audit.ts';
import { connectionLedger } from './connections.ts';
import { metaTable } from './meta.ts';
import type { Hint, SqlEngine } from './sql.ts';
import { sweepLedger } from './sweep.ts';
import { taskLedger } from './tasks.ts';
import { vaultTable } from './vault-table.ts';
import { waitLedger } from './waits.ts';

/** Everything that the ledger can do. */
export type Ledger = ReturnType<typeof openLedger>;

/** Opens the ledger on an engine. */
export function openLedger(engine: SqlEngine) {
  return {
    ...taskLedger(engine),
    ...waitLedger(engine),
    ...attemptLedger(engine),
    ...connectionLedger(engine),
    ...sweepLedger(engine),
    ...auditLog(engine),
    ...metaTable(engine),
    vaultTable: vaultTable(engine),
    /** The ledger's clock, in milliseconds: what decides deadlines. */
    nowMs: (): Promise<number> => engine.read((queries) => queries.nowMs()),
    onHint: (listener: (hint: Hint) => void) => engine.onHint(listener),
    close: () => engine.close(),
  };
}
