/** The tables, as forward-only migrations. A ledger that is newer than the code refuses to open. */
import { Refusal } from '../errors.ts';
import type { Queries } from './sql.ts';

/** One step. `SERIAL_KEY` stands for the engine's own growing primary key. */
interface Migration {
  readonly version: number;
  readonly statements: readonly string[];
}

const FIRST: Migration = {
  version: 1,
  statements: [
    `CREATE TABLE tasks (
      id TEXT PRIMARY KEY, owner TEXT NOT NULL, client_id TEXT NOT NULL, client_name TEXT,
      tool TEXT NOT NULL, args TEXT NOT NULL,
      idem_key TEXT, idem_kind TEXT, idem_digest TEXT,
      status TEXT NOT NULL, status_message TEXT, progress TEXT, checkpoint TEXT, outcome TEXT,
      created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, ttl_ms BIGINT NOT NULL,
      term BIGINT NOT NULL, rev BIGINT NOT NULL,
      due_at BIGINT, holder TEXT, lease_until BIGINT, strikes INTEGER NOT NULL,
      timers INTEGER NOT NULL DEFAULT 0, troubled_since BIGINT, deadline BIGINT, modes TEXT NOT NULL, interaction TEXT NOT NULL, on_cancel TEXT NOT NULL,
      host_lease_ms BIGINT, host_until BIGINT, trace TEXT, ended_expiry BIGINT, is_open INTEGER NOT NULL)`,
    // Each index serves one question of the dispatcher, the sweeper or a caller; partial, so that a million waiting
    // tasks weigh on none of the others.
    `CREATE INDEX tasks_due ON tasks (due_at, owner, id) WHERE due_at IS NOT NULL`,
    `CREATE INDEX tasks_leased ON tasks (lease_until) WHERE lease_until IS NOT NULL`,
    `CREATE INDEX tasks_running ON tasks (owner) WHERE lease_until IS NOT NULL`,
    `CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL`,
    `CREATE INDEX tasks_host ON tasks (host_until) WHERE host_until IS NOT NULL`,
    `CREATE INDEX tasks_expiry ON tasks (ended_expiry) WHERE ended_expiry IS NOT NULL`,
    `CREATE INDEX tasks_open ON tasks (owner) WHERE is_open = 1`,
    `CREATE INDEX tasks_list ON tasks (owner, client_id, created_at, id)`,
    `CREATE UNIQUE INDEX tasks_idempotency ON tasks (owner, client_id, tool, idem_key) WHERE idem_key IS NOT NULL`,

    `CREATE TABLE elicitations (
      id TEXT PRIMARY KEY, task_id TEXT NOT NULL, owner TEXT NOT NULL, client_id TEXT NOT NULL,
      input_key TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, provider TEXT, connection_id TEXT,
      scopes TEXT NOT NULL, judged_generation BIGINT, form TEXT, message TEXT NOT NULL,
      handle_hash TEXT, handle_kid TEXT, deadline BIGINT NOT NULL, created_at BIGINT NOT NULL,
      answered_at BIGINT, action TEXT, content TEXT, finished_at BIGINT, outcome TEXT,
      reasks INTEGER NOT NULL, force_consent INTEGER NOT NULL, reask_at BIGINT)`,
    `CREATE UNIQUE INDEX elicitations_key ON elicitations (task_id, input_key)`,
    `CREATE UNIQUE INDEX elicitations_handle ON elicitations (handle_hash) WHERE handle_hash IS NOT NULL`,
    `CREATE INDEX elicitations_waiting ON elicitations (connection_id) WHERE finished_at IS NULL AND connection_id IS NOT NULL`,
    `CREATE INDEX elicitations_kid ON elicitations (handle_kid) WHERE finished_at IS NULL AND handle_kid IS NOT NULL`,
    `CREATE INDEX elicitations_reask ON elicitations (reask_at) WHERE reask_at IS NOT NULL`,

    `CREATE TABLE connections (
      id TEXT PRIMARY KEY, owner TEXT NOT NULL, provider TEXT NOT NULL, account TEXT NOT NULL,
      status TEXT NOT NULL, status_reason TEXT, generation BIGINT NOT NULL, record TEXT, intent TEXT,
      retry_at BIGINT, failures INTEGER NOT NULL, doubtful_uses INTEGER NOT NULL,
      created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, last_used_at BIGINT)`,
    `CREATE UNIQUE INDEX connections_account ON connections (owner, provider, account)`,
    `CREATE INDEX connections_provider ON connections (provider)`,
    `CREATE INDEX connections_updated ON connections (updated_at)`,

    `CREATE TABLE approvals (
      owner TEXT NOT NULL, client_id TEXT NOT NULL, connection_id TEXT NOT NULL, approved_at BIGINT NOT NULL,
      PRIMARY KEY (connection_id, client_id))`,

    `CREATE TABLE attempts (
      state_hash TEXT PRIMARY KEY, id TEXT NOT NULL, elicitation_id TEXT NOT NULL, task_id TEXT NOT NULL,
      connection_id TEXT NOT NULL, owner TEXT NOT NULL, provider TEXT NOT NULL,
      sealed_verifier TEXT NOT NULL, nonce TEXT, redirect_uri TEXT NOT NULL, issuer TEXT NOT NULL,
      binding_hash TEXT NOT NULL, session_hash TEXT NOT NULL, scopes TEXT NOT NULL, tenant TEXT NOT NULL,
      any_account INTEGER NOT NULL, record_key TEXT NOT NULL, phase TEXT NOT NULL,
      holder TEXT, lease_until BIGINT, started_at BIGINT NOT NULL, deadline BIGINT NOT NULL,
      sealed TEXT, outcome TEXT)`,
    `CREATE UNIQUE INDEX attempts_id ON attempts (id)`,
    `CREATE INDEX attempts_elicitation ON attempts (elicitation_id)`,
    `CREATE INDEX attempts_connection ON attempts (connection_id)`,
    `CREATE INDEX attempts_exchanging ON attempts (connection_id) WHERE phase IN ('exchanging', 'exchanged')`,
    `CREATE INDEX attempts_deadline ON attempts (deadline)`,

    // Vault keys that nothing points at any more, with the instant after which they may be deleted (R22).
    `CREATE TABLE vault_orphans (record_key TEXT PRIMARY KEY, delete_after BIGINT NOT NULL)`,
    `CREATE INDEX vault_orphans_due ON vault_orphans (delete_after)`,
    `CREATE TABLE vault_records (record_key TEXT PRIMARY KEY, sealed TEXT NOT NULL)`,

    `CREATE TABLE records (
      collection TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
      task_id TEXT NOT NULL, written_at BIGINT NOT NULL, PRIMARY KEY (collection, owner, id))`,

    `CREATE TABLE audit (
      seq SERIAL_KEY, at BIGINT NOT NULL, event TEXT NOT NULL, owner TEXT, client_id TEXT,
      task_id TEXT, connection_id TEXT, outcome TEXT NOT NULL, facts TEXT NOT NULL,
      link BIGINT, hash TEXT)`,
    `CREATE INDEX audit_unchained ON audit (seq) WHERE hash IS NULL`,
    `CREATE UNIQUE INDEX audit_link ON audit (link) WHERE link IS NOT NULL`,

    `CREATE TABLE blocked_owners (owner TEXT PRIMARY KEY, blocked_at BIGINT NOT NULL)`,
  ],
};

const SIGNED_IN: Migration = {
  version: 2,
  statements: [
    // When a person last signed in, which a refresh does not change: the absolute age of a connection (R15).
    `ALTER TABLE connections ADD COLUMN signed_in_at BIGINT`,
    `UPDATE connections SET signed_in_at = created_at WHERE generation > 0`,
  ],
};

const MIGRATIONS: readonly Migration[] = [FIRST, SIGNED_IN];

/** Version of the tables that this code works on. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)?.version ?? 0;

/**
 * Brings the tables up to date within the caller's transaction. The caller holds a lock, so that nodes that start
 * together migrate once.
 *
 * @throws Refusal `store_newer`.
 */
export async function migrate(queries: Queries, serialKey: string): Promise<void> {
  await queries.run(`CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)`);
  const row = await queries.get<{ value: string }>(`SELECT value FROM meta WHERE name = 'schema'`);
  const version = Number(row?.value ?? '0');
  if (version > SCHEMA_VERSION) {
    throw new Refusal('store_newer', { facts: { found: version, supported: SCHEMA_VERSION } });
  }
  for (const migration of MIGRATIONS.filter((step) => step.version > version)) {
    for (const statement of migration.statements) {
      await queries.run(statement.replace('SERIAL_KEY', serialKey));
    }
  }
  if (version < SCHEMA_VERSION) {
    await queries.run(
      `INSERT INTO meta (name, value) VALUES ('schema', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      String(SCHEMA_VERSION),
    );
  }
}
