/**
 * `tools/call` with `task` (MCP 2025-11-25, basic/utilities/tasks, "Creating Tasks"): the handle is sent only after
 * the task is durable.
 */
import type { JobDefinition } from '../../engine/define.ts';
import type { Json } from '../../store/records.ts';
import { readInteraction } from '../interaction.ts';
import { progressTokenOf, type Call } from './call.ts';
import { namedKey } from './idempotency.ts';
import type { LegacyParts } from './parts.ts';
import type { SessionState } from './session-state.ts';
import { relatedTask, wireTask } from './wire-task.ts';

/** `_meta` key of the words that a host may hand to its model at once. */
const IMMEDIATE_RESPONSE = 'io.modelcontextprotocol/model-immediate-response';

export async function createTask(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  job: JobDefinition,
  args: Json,
  wanted: { readonly ttl?: unknown },
): Promise<Record<string, unknown>> {
  const { client, caller } = call;
  const { ttl } = wanted;
  const key = namedKey(call);
  const { task } = await parts.tasks.start(caller, {
    job,
    args,
    declared: { tasks: true, modes: client.modes, clientName: client.name },
    interaction: readInteraction(call.meta),
    ...(typeof ttl === 'number' && Number.isFinite(ttl) && ttl >= 0 ? { ttlMs: Math.floor(ttl) } : {}),
    ...(key === undefined ? {} : { idempotency: key }),
  });
  state.followed.follow(task.taskId, { related: true, progressToken: progressTokenOf(call.meta) });
  const title = job.title ?? job.name;
  return {
    task: wireTask(task),
    _meta: {
      ...relatedTask(task.taskId),
      [IMMEDIATE_RESPONSE]:
        `"${title}" has started as task ${task.taskId}. It goes on by itself; a person may be asked to sign in. ` +
        `Its result is not here yet.`,
    },
  };
}
