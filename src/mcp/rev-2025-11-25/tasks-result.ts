/**
 * `tasks/result` (MCP 2025-11-25, basic/utilities/tasks): blocks until the task has ended, shows its questions on the
 * way, and answers as the call itself would have. It may be opened again and several times at once; nothing but the
 * client limits how long it lasts, and it sleeps until the task changes.
 */
import { isTerminal } from '../../task/status.ts';
import type { TaskSnapshot } from '../../engine/tasks.ts';
import { openAskStream } from './ask-stream.ts';
import type { Call } from './call.ts';
import { progressTokenOf } from './call.ts';
import { completions } from './completions.ts';
import type { LegacyParts } from './parts.ts';
import { noteDelivery } from './note-delivery.ts';
import { openProgress } from './progress.ts';
import type { SessionState } from './session-state.ts';
import { openWaiting } from './waiting.ts';
import { answerOf, messageOf, relatedTask } from './wire-task.ts';
import { taskUnknown, waitOver } from './rpc-error.ts';

export async function tasksResult(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  taskId: string,
): Promise<Record<string, unknown>> {
  const { tasks, settings } = parts;
  const waiting = openWaiting(call.signal);
  const asks = openAskStream(parts, call, {
    taskId,
    modes: ['url', 'form'],
    related: true,
    given: state.given,
    wake: waiting.wake,
  });
  const own = progressTokenOf(call.meta);
  const started = state.followed.progressToken(taskId);
  const tell = openProgress(
    call,
    [own, started].filter((token) => token !== undefined),
  );
  const release = state.followed.pause(taskId);
  try {
    let task: TaskSnapshot | undefined = await tasks.read(call.caller, taskId);
    while (task !== undefined && !isTerminal(task.status)) {
      for (const note of completions(state.given, task, true)) await call.send(note);
      await asks.show(task.inputs);
      const { rev } = task;
      task = await tasks.waitForChange(call.caller, taskId, {
        beyondRev: rev,
        timeoutMs: settings.keepAliveMs,
        signal: waiting.next(),
      });
      if (call.signal.aborted) throw waitOver();
      if (task !== undefined && !isTerminal(task.status)) await tell(task.progress, messageOf(task));
    }
    if (task === undefined) throw taskUnknown();
    for (const note of completions(state.given, task, true)) await call.send(note);
    noteDelivery(parts, call, task);
    const answer = answerOf(task);
    return { ...answer, _meta: { ...(answer['_meta'] as object | undefined), ...relatedTask(taskId) } };
  } finally {
    asks.end();
    waiting.end();
    release();
  }
}
