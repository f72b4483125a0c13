/**
 * A call without a handle, held on a task: until its end, until a person is needed, or until the client would lose
 * patience. Forms are asked on the call's own stream; a link ends the call, and the client repeats it once the person
 * has signed in (MCP 2025-11-25, client/elicitation, "URL Elicitation Required Error").
 */
import type { InputRequest, TaskSnapshot } from '../../engine/tasks.ts';
import { isTerminal } from '../../task/status.ts';
import { openAskStream } from './ask-stream.ts';
import { progressTokenOf, type Call } from './call.ts';
import type { LegacyParts } from './parts.ts';
import { openProgress } from './progress.ts';
import type { SessionState } from './session-state.ts';
import { openWaiting } from './waiting.ts';
import { taskUnknown, waitOver } from './rpc-error.ts';
import { messageOf } from './wire-task.ts';

/** Why a held call is answered. */
export type Held =
  | { readonly kind: 'ended'; readonly task: TaskSnapshot }
  /** Links are open, and no form is that this client could answer first. */
  | { readonly kind: 'links'; readonly task: TaskSnapshot; readonly links: readonly InputRequest[] }
  | { readonly kind: 'patience'; readonly task: TaskSnapshot };

/** Holds a call. @throws RpcError when the caller has no such task, or stopped waiting. */
export async function hold(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  taskId: string,
  limits: {
    readonly holdMs: number;
    /** Whether links can be handed to this client at all. */
    readonly links: boolean;
  },
): Promise<Held> {
  const { tasks, settings, nowMs } = parts;
  const untilMs = nowMs() + limits.holdMs;
  const waiting = openWaiting(call.signal);
  const asks = openAskStream(parts, call, {
    taskId,
    modes: ['form'],
    related: false,
    given: state.given,
    wake: waiting.wake,
  });
  const token = progressTokenOf(call.meta);
  const tell = openProgress(call, token === undefined ? [] : [token]);
  try {
    let task = await tasks.read(call.caller, taskId);
    for (;;) {
      if (call.signal.aborted) throw waitOver();
      if (task === undefined) throw taskUnknown();
      if (isTerminal(task.status)) return { kind: 'ended', task };
      const leftMs = untilMs - nowMs();
      const links = limits.links ? task.inputs.filter((input) => input.mode === 'url') : [];
      const formsOpen = call.client.modes.form && task.inputs.some((input) => input.mode === 'form');
      // A link that this session was given before is being used: whoever calls again waits for its sign-in.
      const fresh = links.some((link) => !state.given.has(link.elicitationId));
      if (links.length > 0 && ((fresh && !formsOpen) || leftMs <= 0)) return { kind: 'links', task, links };
      if (leftMs <= 0) return { kind: 'patience', task };
      await asks.show(task.inputs);
      await tell(task.progress, messageOf(task));
      task = await tasks.waitForChange(call.caller, taskId, {
        beyondRev: task.rev,
        timeoutMs: Math.min(leftMs, settings.keepAliveMs),
        signal: waiting.next(),
      });
    }
  } finally {
    asks.end();
    waiting.end();
  }
}
