/**
 * News of tasks for the session that started them, on its stream of server messages: status, progress under the token
 * of the original call, and links that are done with. All of it is optional for a client (MCP 2025-11-25,
 * basic/utilities/tasks, "Task Status Notification"); without such a stream nothing is read or sent. Bounded: the
 * oldest tasks are followed no longer.
 *
 * Questions belong to `tasks/result`, which a client SHOULD open when it hears of them ("Input Required Status"). One
 * that goes on polling instead would never see them, so it is asked here.
 */
import type { Caller } from '../../engine/caller.ts';
import type { TaskSnapshot } from '../../engine/tasks.ts';
import { isTerminal } from '../../task/status.ts';
import { openAskStream } from './ask-stream.ts';
import type { Message } from './call.ts';
import type { Client } from './client.ts';
import { completions } from './completions.ts';
import type { Given } from './given.ts';
import type { LegacyParts } from './parts.ts';
import { openProgress } from './progress.ts';
import { messageOf, wireTask } from './wire-task.ts';

const MOST = 100;

interface Following {
  /** Whether the client knows the task. */
  readonly related: boolean;
  readonly progressToken: string | number | undefined;
  /** Tells what is new. */
  readonly look: () => void;
  /** A poll was answered with questions. */
  readonly polled: () => void;
  /** The stream of server messages is gone, and with it what it showed. */
  readonly deaf: () => void;
  readonly stop: () => void;
}

/** Tasks of a session. */
export type Followed = ReturnType<typeof openFollowed>;

export function openFollowed(
  parts: Pick<LegacyParts, 'tasks' | 'prompts' | 'log'>,
  session: {
    readonly caller: Caller;
    readonly client: Client;
    readonly given: Given;
    /** Whether the session has a stream of server messages at the moment. */
    readonly listening: () => boolean;
    readonly send: (message: Message) => Promise<void>;
  },
) {
  const { tasks, log } = parts;
  const following = new Map<string, Following>();
  /** Tasks whose news travel on a stream of their own, with how many there are. */
  const paused = new Map<string, number>();

  function unfollow(taskId: string): void {
    following.get(taskId)?.stop();
    following.delete(taskId);
  }

  function start(taskId: string, related: boolean, progressToken: Following['progressToken']): Following {
    let busy = false;
    let again = false;
    let status: TaskSnapshot['status'] = 'working';
    /** Polls that were answered with questions while there was a stream to ask on. */
    let polls = 0;
    let stopped = false;
    const asks = openAskStream(parts, session, {
      taskId,
      modes: ['url', 'form'],
      related: true,
      given: session.given,
      wake: tellNews,
    });
    const tell = openProgress(session, progressToken === undefined ? [] : [progressToken]);

    async function news(): Promise<void> {
      const task = await tasks.read(session.caller, taskId);
      if (task === undefined) {
        unfollow(taskId);
        return;
      }
      // Twice: whoever has heard of a question once may be about to open `tasks/result`.
      if (polls > 1) await asks.show(task.inputs);
      // What was shown to nobody is free for other streams.
      if (stopped || !session.listening()) asks.end();
      if (paused.has(taskId)) return;
      for (const note of completions(session.given, task, related)) await session.send(note);
      if (!isTerminal(task.status)) await tell(task.progress, messageOf(task));
      if (related && task.status !== status) {
        await session.send({ method: 'notifications/tasks/status', params: wireTask(task) });
      }
      status = task.status;
      if (isTerminal(task.status)) unfollow(taskId);
    }

    async function look(): Promise<void> {
      again = true;
      if (busy || !session.listening() || (paused.has(taskId) && polls < 2)) return;
      busy = true;
      try {
        while (again) {
          again = false;
          await news();
        }
      } catch (error) {
        log.debug('mcp.news lost', { taskId, error });
      } finally {
        busy = false;
      }
    }

    function tellNews(): void {
      void look();
    }

    const unwatch = tasks.watch(taskId, tellNews);
    return {
      related,
      progressToken,
      look: tellNews,
      polled() {
        if (!session.listening()) return;
        polls += 1;
        if (polls === 2) tellNews();
      },
      deaf() {
        polls = Math.min(polls, 1);
        asks.end();
      },
      stop() {
        stopped = true;
        unwatch();
        asks.end();
      },
    };
  }

  function follow(
    taskId: string,
    how: { related: boolean; progressToken?: string | number | undefined },
  ): Following {
    const before = following.get(taskId);
    unfollow(taskId);
    const started = start(taskId, how.related, how.progressToken ?? before?.progressToken);
    following.set(taskId, started);
    const oldest = following.keys().next();
    if (following.size > MOST && oldest.done !== true) unfollow(oldest.value);
    return started;
  }

  return {
    /** Follows a task from now on. */
    follow,

    /** The client was told the state of a task that it asked for by its id. */
    polled({ taskId, inputs }: TaskSnapshot): void {
      if (inputs.length === 0) return;
      const known = following.get(taskId);
      (known?.related === true ? known : follow(taskId, { related: true })).polled();
    },

    /** The stream of server messages is gone: others may show what it left unanswered. */
    deaf(): void {
      for (const { deaf } of following.values()) deaf();
    },

    /** The progress token of the call that started a task; it stays valid until the task ends. */
    progressToken: (taskId: string): string | number | undefined => following.get(taskId)?.progressToken,

    /** While a stream of the task itself is open, its news travel there. Returns what ends that. */
    pause(taskId: string): () => void {
      paused.set(taskId, (paused.get(taskId) ?? 0) + 1);
      return () => {
        const left = (paused.get(taskId) ?? 1) - 1;
        if (left > 0) {
          paused.set(taskId, left);
          return;
        }
        paused.delete(taskId);
        following.get(taskId)?.look();
      };
    },

    end(): void {
      for (const taskId of following.keys()) unfollow(taskId);
    },
  };
}
