/**
 * Questions of a task on the stream of one request: `elicitation/create` (MCP 2025-11-25, client/elicitation). Each
 * question is shown once a stream, by one stream at a time, and only in a mode that the client declared. The answer
 * comes by another request and is taken in `answers.ts`; nothing here waits for it.
 */
import type { InputRequest } from '../../engine/tasks.ts';
import type { Call } from './call.ts';
import { newAskId } from './ask-id.ts';
import type { Client } from './client.ts';
import type { Given } from './given.ts';
import type { LegacyParts } from './parts.ts';
import { REVISIONS } from './revisions.ts';
import { relatedTask } from './wire-task.ts';

/** A form that still does not fit is asked this many times on one stream. */
const MOST_TRIES = 3;

/** URL mode parameters, as `elicitation/create` and the error −32042 carry them. */
export function urlElicitation(input: InputRequest): Record<string, unknown> {
  return { mode: 'url', message: input.message, url: input.url, elicitationId: input.elicitationId };
}

/** Form mode parameters. Revisions before 2025-11-25 know no `mode`. */
export function formElicitation(
  client: Client,
  question: { readonly message: string; readonly schema: unknown },
): Record<string, unknown> {
  return {
    ...(REVISIONS[client.revision].elicitation.url ? { mode: 'form' } : {}),
    message: question.message,
    requestedSchema: question.schema,
  };
}

/** Opens the questions of one stream. */
export function openAskStream(
  parts: Pick<LegacyParts, 'prompts' | 'log'>,
  call: Pick<Call, 'client' | 'send'>,
  asks: {
    readonly taskId: string;
    /** Modes that this stream may use, within what the client declared. */
    readonly modes: readonly InputRequest['mode'][];
    /** Whether the client knows the task, so that messages name it. */
    readonly related: boolean;
    readonly given: Given;
    /** Called when a question becomes free, or has to be asked again. */
    readonly wake: () => void;
  },
) {
  const { prompts, log } = parts;
  const { client } = call;
  const stream = {};
  const tries = new Map<string, number>();

  function name(key: string): string {
    return `${asks.taskId} ${key}`;
  }

  async function send(input: InputRequest, problems: readonly string[]): Promise<void> {
    const message = problems.length === 0 ? input.message : `${input.message} (${problems.join('; ')})`;
    const params =
      input.mode === 'url'
        ? urlElicitation(input)
        : formElicitation(client, { message, schema: input.schema });
    if (input.mode === 'url') asks.given.add(input.elicitationId, asks.taskId);
    log.debug('mcp.asked', { taskId: asks.taskId, key: input.key, mode: input.mode });
    await call.send({
      id: newAskId(asks.taskId, input.key),
      method: 'elicitation/create',
      params: { ...params, ...(asks.related ? { _meta: relatedTask(asks.taskId) } : {}) },
    });
  }

  return {
    /** Shows what is open and not yet shown; lets go of what is open no longer. */
    async show(inputs: readonly InputRequest[]): Promise<void> {
      const open = new Set(inputs.map((input) => input.key));
      for (const key of [...tries.keys()].filter((known) => !open.has(known))) {
        prompts.release(name(key), stream, asks.wake);
        tries.delete(key);
      }
      for (const input of inputs) {
        if (!client.modes[input.mode] || !asks.modes.includes(input.mode)) continue;
        const tried = tries.get(input.key) ?? 0;
        tries.set(input.key, tried);
        if (!prompts.take(name(input.key), stream, asks.wake)) continue;
        const problems = prompts.takeProblems(name(input.key), stream);
        if (tried > 0 && (problems === null || tried >= MOST_TRIES)) continue;
        tries.set(input.key, tried + 1);
        await send(input, problems ?? []);
      }
    },

    /** The stream is over: other streams may show what it leaves unanswered. */
    end(): void {
      for (const key of tries.keys()) prompts.release(name(key), stream, asks.wake);
      tries.clear();
    },
  };
}
