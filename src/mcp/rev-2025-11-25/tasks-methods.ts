/** `tasks/get`, `tasks/list` and `tasks/cancel` (MCP 2025-11-25, basic/utilities/tasks): from the ledger, on any node. */
import type { TaskSnapshot } from '../../engine/tasks.ts';
import type { Call } from './call.ts';
import { newCursor, openCursor } from './cursor.ts';
import { linkLines, textLinkAllowed } from '../delivery.ts';
import type { LegacyParts } from './parts.ts';
import { INVALID_PARAMS } from '../json-rpc.ts';
import { taskUnknown, RpcError } from './rpc-error.ts';
import type { SessionState } from './session-state.ts';
import { wireTask, type WireTask } from './wire-task.ts';

/** The task for one client: where links may travel as text, the status message carries them. */
function shown(parts: LegacyParts, call: Call, task: TaskSnapshot): WireTask {
  const wire = wireTask(task);
  if (call.client.modes.url || !textLinkAllowed(parts.delivery, call.client.name)) return wire;
  const links = task.inputs.filter((input) => input.mode === 'url');
  return links.length === 0 ? wire : { ...wire, statusMessage: linkLines(links) };
}

export async function getTask(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  taskId: string,
): Promise<WireTask> {
  const task = await parts.tasks.read(call.caller, taskId);
  if (task === undefined) throw taskUnknown();
  state.followed.polled(task);
  return shown(parts, call, task);
}

/** Tasks that the caller started through this client (R11), a page at a time. */
export async function listTasks(
  parts: LegacyParts,
  call: Call,
  cursor: string | undefined,
): Promise<Record<string, unknown>> {
  const { tasks, keyring, wallMs, settings } = parts;
  const after =
    cursor === undefined ? null : await openCursor(keyring, call.caller, cursor, Math.floor(wallMs()));
  if (after === undefined) {
    throw new RpcError(INVALID_PARAMS, 'cursor: is not one that this server gave to this caller');
  }
  const found = await tasks.list(call.caller, { after, limit: settings.pageSize + 1 });
  const page = found.slice(0, settings.pageSize);
  const last = page.at(-1);
  const more = found.length > page.length && last !== undefined;
  return {
    tasks: page.map((task) => shown(parts, call, task)),
    ...(more
      ? {
          nextCursor: await newCursor(
            keyring,
            call.caller,
            { createdAtMs: last.createdAtMs, id: last.taskId },
            wallMs(),
          ),
        }
      : {}),
  };
}

/** `cancelled` is in the ledger before the answer leaves. */
export async function cancelTask(parts: LegacyParts, call: Call, taskId: string): Promise<WireTask> {
  const done = await parts.tasks.cancel(call.caller, taskId);
  if (done === undefined) throw taskUnknown();
  const wire = wireTask(done.task);
  if (!done.cancelled) {
    throw new RpcError(INVALID_PARAMS, `Cannot cancel task: already in terminal status '${wire.status}'`, {
      status: wire.status,
    });
  }
  return wire;
}
