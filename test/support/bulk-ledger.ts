/** A ledger full of waiting tasks, written in bulk past the ledger's own methods. */
import type { SqlEngine } from '../../src/store/sql.ts';

/** Fills a ledger with tasks that wait for a person, each with its question, ten to a connection. */
export async function fillWaiting(engine: SqlEngine, many: number, nowMs: number): Promise<void> {
  const series = (from: number, to: number) =>
    `WITH RECURSIVE series(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ${to})`;
  const batch = 50_000;
  for (let from = 0; from < many; from += batch) {
    const to = Math.min(many, from + batch);
    await engine.write(async (queries) => {
      await queries.run(
        `${series(from, to)} INSERT INTO tasks (id, owner, client_id, tool, args, status, status_message, created_at,
           updated_at, ttl_ms, term, rev, strikes, deadline, modes, interaction, on_cancel, is_open)
         SELECT 'bulk-' || n, 'owner-' || (n / 100), 'client-1', 'import', '{"from":"here"}', 'input_required',
           'A sign-in is needed.', ${nowMs}, ${nowMs}, 86400000, 2, 2, 0, ${nowMs} + 3600000 + n,
           '{"form":true,"url":true}', 'interactive', 'cancel', 1 FROM series`,
      );
      await queries.run(
        `${series(from, to)} INSERT INTO elicitations (id, task_id, owner, client_id, input_key, name, kind, provider,
           connection_id, scopes, message, handle_hash, handle_kid, deadline, created_at, reasks, force_consent)
         SELECT 'bulk-ask-' || n, 'bulk-' || n, 'owner-' || (n / 100), 'client-1', 'github', 'github', 'authorize', 'github',
           'bulk-connection-' || (n / 10), '["repo"]', 'Sign in.', 'bulk-hash-' || n, 'k1', ${nowMs} + 3600000 + n, ${nowMs}, 0, 0
         FROM series`,
      );
      await queries.run(
        `${series(from, to)} INSERT INTO attempts (state_hash, id, elicitation_id, task_id, connection_id, owner, provider,
           sealed_verifier, redirect_uri, issuer, binding_hash, session_hash, scopes, tenant, any_account, record_key,
           phase, started_at, deadline)
         SELECT 'bulk-state-' || n, 'bulk-attempt-' || n, 'bulk-ask-' || n, 'bulk-' || n, 'bulk-connection-' || (n / 10),
           'owner-' || (n / 100), 'github', 'v', 'u', 'i', 'b', 's', '[]', '{}', 0, 'bulk-record-' || n, 'started',
           ${nowMs}, ${nowMs} + 3600000 + n FROM series WHERE n % 5 = 0`,
      );
    });
  }
}
