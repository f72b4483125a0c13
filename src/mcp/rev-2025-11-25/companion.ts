/**
 * Companion tools for clients that know neither tasks nor URL mode: the task methods as tools that a model can call.
 * They obey the same ownership; a task of somebody else is unknown to them.
 */
import { Refusal } from '../../errors.ts';
import { text, type ToolResult } from '../../engine/define.ts';
import type { TaskSnapshot } from '../../engine/tasks.ts';
import type { Catalogue } from '../catalogue.ts';
import type { Call } from './call.ts';
import type { Client } from './client.ts';
import { linkLines, textLinkAllowed } from '../delivery.ts';
import type { LegacyParts } from './parts.ts';
import { INVALID_PARAMS } from '../json-rpc.ts';
import { taskUnknown, RpcError } from './rpc-error.ts';
import { messageOf, wireTask } from './wire-task.ts';

/** For whom companion tools are listed. `auto`: clients that declared neither tasks nor URL mode. */
export type Companions = 'auto' | 'always' | 'never';

const TASK_ID = {
  type: 'object',
  properties: { taskId: { type: 'string', description: 'The taskId that an earlier result named.' } },
  required: ['taskId'],
} as const;

/** Names of the companion tools. */
export const COMPANION_NAMES = ['task_status', 'task_result', 'task_cancel'] as const;

/** One of them. */
export type CompanionName = (typeof COMPANION_NAMES)[number];

/** The companion tools as `tools/list` shows them. */
export const COMPANION_TOOLS: readonly Record<string, unknown>[] = [
  {
    name: 'task_status' satisfies CompanionName,
    title: 'Status of a task',
    description: 'Says how far a task is that an earlier call started, and what it waits for.',
    inputSchema: TASK_ID,
    annotations: { readOnlyHint: true },
  },
  {
    name: 'task_result' satisfies CompanionName,
    title: 'Result of a task',
    description: 'Waits a while for a task that an earlier call started, and gives its result.',
    inputSchema: TASK_ID,
    annotations: { readOnlyHint: true },
  },
  {
    name: 'task_cancel' satisfies CompanionName,
    title: 'Cancel a task',
    description: 'Stops a task that an earlier call started.',
    inputSchema: TASK_ID,
    annotations: { destructiveHint: true },
  },
];

/** Whether a name is one of a companion tool. */
export function isCompanion(name: string): name is CompanionName {
  return (COMPANION_NAMES as readonly string[]).includes(name);
}

/** Whether a client is shown the companion tools. */
export function companionsListed(parts: Pick<LegacyParts, 'companions'>, client: Client): boolean {
  switch (parts.companions) {
    case 'always':
      return true;
    case 'never':
      return false;
    case 'auto':
      return !client.tasks && !client.modes.url;
  }
}

/** Stops the start when a tool of the server has the name of a companion that may be listed. */
export function checkCompanionNames(companions: Companions, catalogue: Catalogue): void {
  if (companions === 'never') return;
  for (const name of COMPANION_NAMES.filter((taken) => catalogue.get(taken) !== undefined)) {
    throw new Refusal('configuration_invalid', {
      message: `tools.${name}: this name belongs to a companion tool; rename the tool or set companions to "never"`,
    });
  }
}

/** The `taskId` argument of a companion tool. @throws RpcError −32602 naming the field. */
export function companionTaskId(args: unknown): string {
  const taskId = (args as { taskId?: unknown } | null | undefined)?.taskId;
  if (typeof taskId === 'string' && taskId !== '') return taskId;
  throw new RpcError(INVALID_PARAMS, 'arguments.taskId: must be the id of a task', {
    reason: 'arguments_invalid',
  });
}

/** `task_status`. */
export async function taskStatus(parts: LegacyParts, call: Call, taskId: string): Promise<ToolResult> {
  const task = await parts.tasks.read(call.caller, taskId);
  if (task === undefined) throw taskUnknown();
  return statusText(task, textLinkAllowed(parts.delivery, call.client.name));
}

/** `task_cancel`. A task that has ended stays as it is, and the text says so. */
export async function taskCancel(parts: LegacyParts, call: Call, taskId: string): Promise<ToolResult> {
  const done = await parts.tasks.cancel(call.caller, taskId);
  if (done === undefined) throw taskUnknown();
  if (done.cancelled) return text('Cancelled.');
  return text(`It had ended before (${wireTask(done.task).status}) and stays as it is.`, { isError: true });
}

function statusText(task: TaskSnapshot, withLinks: boolean): ToolResult {
  const { status } = wireTask(task);
  const links = withLinks ? task.inputs.filter((input) => input.mode === 'url') : [];
  const said = (links.length > 0 ? task.statusMessage : messageOf(task)) ?? '';
  return text([`Status: ${status}. ${said}`, ...(links.length > 0 ? [linkLines(links)] : [])].join('\n\n'));
}
