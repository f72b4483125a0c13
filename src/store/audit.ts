/**
 * The audit log: append-only, written in the transaction of what it tells of, chained afterwards. Each row's hash
 * covers the row and the hash before it, so that a changed, removed or reordered row breaks the chain; the head can
 * be kept elsewhere. Chaining is a step of the sweeper, since a chain inside every transaction would make all writers
 * wait for one another.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../task/idempotency.ts';
import type { AuditEvent, Json } from './records.ts';
import type { Queries, SqlEngine } from './sql.ts';

/** A row as exported. */
export interface AuditRow {
  readonly seq: number;
  /** Position in the chain, from 1. */
  readonly link: number | null;
  readonly at: number;
  readonly event: string;
  readonly owner: string | null;
  readonly clientId: string | null;
  readonly taskId: string | null;
  readonly connectionId: string | null;
  readonly outcome: string;
  readonly facts: Json;
  readonly hash: string | null;
}

interface Row {
  seq: number;
  link: number | null;
  at: number;
  event: string;
  owner: string | null;
  client_id: string | null;
  task_id: string | null;
  connection_id: string | null;
  outcome: string;
  facts: string;
  hash: string | null;
}

/** Hash of nothing: the chain starts from it. */
export const CHAIN_START = '0'.repeat(64);

/** Adds an event to the caller's transaction. */
export async function record(queries: Queries, event: AuditEvent): Promise<void> {
  await queries.run(
    `INSERT INTO audit (at, event, owner, client_id, task_id, connection_id, outcome, facts)
     VALUES (keyturn_now(), ?, ?, ?, ?, ?, ?, ?)`,
    event.event,
    event.owner,
    event.clientId ?? null,
    event.taskId ?? null,
    event.connectionId ?? null,
    event.outcome,
    JSON.stringify(event.facts ?? {}),
  );
}

function toAuditRow(row: Row): AuditRow {
  const { client_id: clientId, task_id: taskId, connection_id: connectionId, facts, ...rest } = row;
  return { ...rest, clientId, taskId, connectionId, facts: JSON.parse(facts) as Json };
}

/** SHA-256 over the hash before and the row, hexadecimal. */
export function chainHash(before: string, row: AuditRow): string {
  const { hash: _, ...content } = row;
  return createHash('sha256').update(before).update(canonicalJson(content)).digest('hex');
}

/** Where a chain breaks, or undefined when it holds. */
export function brokenLink(rows: readonly AuditRow[], before = CHAIN_START): number | undefined {
  let head = before;
  for (const row of rows) {
    if (row.hash === null || chainHash(head, row) !== row.hash) return row.link ?? row.seq;
    head = row.hash;
  }
  return undefined;
}

const COLUMNS = 'seq, link, at, event, owner, client_id, task_id, connection_id, outcome, facts, hash';

export function auditLog(engine: SqlEngine) {
  return {
    /** Records an event on its own. */
    recordEvent: (event: AuditEvent) => engine.write((queries) => record(queries, event)),

    /** Chains at most `limit` rows. @returns how many. */
    chainAudit: (limit: number) =>
      engine.write(async (queries) => {
        // The meta row is the lock of the chain: one node at a time.
        await queries.run(
          `INSERT INTO meta (name, value) VALUES ('audit', '0') ON CONFLICT (name) DO NOTHING`,
        );
        await queries.get(`SELECT value FROM meta WHERE name = 'audit'${queries.lock}`);
        const last = await queries.get<Row>(
          `SELECT ${COLUMNS} FROM audit WHERE link IS NOT NULL ORDER BY link DESC LIMIT 1`,
        );
        const open = await queries.all<Row>(
          `SELECT ${COLUMNS} FROM audit WHERE hash IS NULL ORDER BY seq LIMIT ?`,
          limit,
        );
        let head = last?.hash ?? CHAIN_START;
        let link = last?.link ?? 0;
        for (const row of open) {
          link += 1;
          head = chainHash(head, toAuditRow({ ...row, link }));
          await queries.run(`UPDATE audit SET link = ?, hash = ? WHERE seq = ?`, link, head, row.seq);
        }
        return open.length;
      }),

    /**
     * How many people the browser sign-in and access tokens know by the same name (R10): who signed in and has tasks; or
     * whether one of them is this owner.
     */
    countProven: (owner?: string): Promise<number> =>
      engine.read(async (queries) => {
        const row = await queries.get<{ many: number }>(
          owner === undefined
            ? `SELECT count(DISTINCT owner) AS many FROM audit
               WHERE event = 'person.signed in' AND owner IN (SELECT owner FROM audit WHERE event = 'wait.asked')`
            : `SELECT count(DISTINCT owner) AS many FROM audit WHERE event = 'person.signed in' AND owner = ?`,
          ...(owner === undefined ? [] : [owner]),
        );
        return Number(row?.many ?? 0);
      }),

    /** Chained rows after a position, in order. */
    readAudit: (afterLink: number, limit: number): Promise<AuditRow[]> =>
      engine.read(async (queries) => {
        const rows = await queries.all<Row>(
          `SELECT ${COLUMNS} FROM audit WHERE link > ? ORDER BY link LIMIT ?`,
          afterLink,
          limit,
        );
        return rows.map(toAuditRow);
      }),
  };
}
