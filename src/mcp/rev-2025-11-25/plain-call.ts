/**
 * `tools/call` of a job without `task`: the same durable task, found again by the call itself (D7, R24). The client
 * repeats the call after a sign-in or a pause and rejoins its task; a second run starts only after the result of the
 * first has reached it.
 */
import type { JobDefinition } from '../../engine/define.ts';
import type { InputRequest, TaskSnapshot } from '../../engine/tasks.ts';
import type { Json } from '../../store/records.ts';
import { implicitKey } from '../../task/idempotency.ts';
import { urlElicitation } from './ask-stream.ts';
import type { Call } from './call.ts';
import { companionsListed } from './companion.ts';
import { textLinkAllowed } from '../delivery.ts';
import { readInteraction } from '../interaction.ts';
import { hold } from './hold.ts';
import { namedKey } from './idempotency.ts';
import { noteDelivery } from './note-delivery.ts';
import type { LegacyParts } from './parts.ts';
import type { SessionState } from './session-state.ts';
import { linksText, runningText } from './texts.ts';
import { URL_ELICITATION_REQUIRED, RpcError } from './rpc-error.ts';
import { answerOf } from './wire-task.ts';

export async function plainCall(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  job: JobDefinition,
  args: Json,
): Promise<Record<string, unknown>> {
  const { client, caller } = call;
  const { task } = await parts.tasks.start(caller, {
    job,
    args,
    declared: { tasks: false, modes: client.modes, clientName: client.name },
    interaction: readInteraction(call.meta),
    idempotency: namedKey(call) ?? implicitKey(args),
  });
  return await heldAnswer(parts, state, call, task.taskId, `Call ${job.name} again with the same arguments`);
}

/**
 * Holds a call on a task and answers it.
 *
 * @param again what brings the client back to the same task, as the beginning of a sentence.
 */
export async function heldAnswer(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  taskId: string,
  again: string,
): Promise<Record<string, unknown>> {
  const { client } = call;
  const asText = !client.modes.url && textLinkAllowed(parts.delivery, client.name);
  const held = await hold(parts, state, call, taskId, {
    holdMs: parts.settings.holdMs,
    links: client.modes.url || asText,
  });
  const back = companionsListed(parts, client)
    ? `${again}, or call task_result with taskId "${taskId}"`
    : again;
  switch (held.kind) {
    case 'ended':
      noteDelivery(parts, call, held.task);
      return answerOf(held.task);
    case 'links':
      give(state, held.task, held.links);
      if (asText) return linksText(held.links, back);
      throw new RpcError(
        URL_ELICITATION_REQUIRED,
        'A person has to open a link before this call can go on.',
        {
          elicitations: held.links.map(urlElicitation),
        },
      );
    case 'patience':
      return runningText(held.task, back);
  }
}

/** Remembers which links the session has, and tells it when they are done with. */
function give(state: SessionState, task: TaskSnapshot, links: readonly InputRequest[]): void {
  for (const link of links) state.given.add(link.elicitationId, task.taskId);
  state.followed.follow(task.taskId, { related: false });
}
