/**
 * Cursors of `tasks/list`: where the page before ended, sealed for one owner and client, so that nobody reads one or
 * makes one (MCP 2025-11-25, server/utilities/pagination).
 */
import type { Caller } from '../../engine/caller.ts';
import type { Keyring } from '../../vault/keyring.ts';
import { openValue, sealValue } from '../../vault/sealed-value.ts';

/** The last task of a page. */
export interface Position {
  readonly createdAtMs: number;
  readonly id: string;
}

const LIVES_MS = 24 * 3_600_000;

function contextOf(caller: Caller): readonly string[] {
  return ['tasks/list', caller.owner, caller.clientId];
}

/** A cursor for what follows a position. */
export function newCursor(
  keyring: Keyring,
  caller: Caller,
  { createdAtMs, id }: Position,
  nowMs: number,
): Promise<string> {
  const options = { expiresAtMs: Math.ceil(nowMs + LIVES_MS), context: contextOf(caller) };
  return sealValue(keyring, 'request-state', { at: createdAtMs, id }, options);
}

/** The position, or undefined for anything that is not a cursor of this caller. */
export async function openCursor(
  keyring: Keyring,
  caller: Caller,
  text: string,
  nowMs: number,
): Promise<Position | undefined> {
  const opened = await openValue(keyring, 'request-state', text, { nowMs, context: contextOf(caller) });
  if (opened === undefined) return undefined;
  const { at, id } = opened as { at: number; id: string };
  return { createdAtMs: at, id };
}
