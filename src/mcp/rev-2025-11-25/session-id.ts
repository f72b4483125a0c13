/**
 * Ids of sessions. An id carries, sealed, what its client said in `initialize`; any node that holds the keys can go on
 * with the session, so that neither a restart nor a load balancer without stickiness loses one. An id opens for one
 * owner and one client alone and gives no access by itself: every request brings its own access token (MCP
 * 2025-11-25, basic/security_best_practices, "Session Hijacking"). Everything else is no id at all.
 */
import type { Caller } from '../../engine/caller.ts';
import type { Keyring } from '../../vault/keyring.ts';
import { openValue, sealValue } from '../../vault/sealed-value.ts';
import type { Client } from './client.ts';
import { isRevision } from './revisions.ts';

function contextOf(caller: Caller): readonly string[] {
  return ['mcp session', caller.owner, caller.clientId];
}

/** A fresh id; unguessable, since it is sealed under a random salt. Visible ASCII. */
export function newSessionId(
  keyring: Keyring,
  caller: Caller,
  client: Client,
  expiresAtMs: number,
): Promise<string> {
  const { revision, name, modes, tasks } = client;
  return sealValue(
    keyring,
    'request-state',
    { v: revision, n: name, f: modes.form, u: modes.url, t: tasks },
    { expiresAtMs, context: contextOf(caller) },
  );
}

/** The client behind an id, or undefined when this caller has no such session. */
export async function openSessionId(
  keyring: Keyring,
  caller: Caller,
  id: string,
  nowMs: number,
): Promise<Client | undefined> {
  const opened = await openValue(keyring, 'request-state', id, { nowMs, context: contextOf(caller) });
  if (opened === undefined) return undefined;
  const { v, n, f, u, t } = opened as { v: unknown; n: unknown; f: unknown; u: unknown; t: unknown };
  if (!isRevision(v)) return undefined;
  return {
    revision: v,
    name: typeof n === 'string' ? n : null,
    modes: { form: f === true, url: u === true },
    tasks: t === true,
  };
}
