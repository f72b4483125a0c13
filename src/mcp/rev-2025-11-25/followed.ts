/**
 * News of tasks for the session that started them, on its stream of server messages: status, progress under the token
 * of the original call, and links that are done with. All of it is optional for a client (MCP 2025-11-25,
 * basic/utilities/tasks, "Task Status Notification"); without such a stream nothing is read or sent. Bounded: the
 * oldest tasks are followed no longer.
 */
import type { Caller } from '../../engine/caller.ts';
import type { TaskSnapshot } from '../../engine/tasks.ts';
import { isTerminal } from '../../task/status.ts';
import type { Message } from './call.ts';
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
  readonly stop: () => void;
}

/** Tasks of a session. */
export type Followed = ReturnType<typeof openFollowed>;

export function openFollowed(
  { tasks, log }: Pick<LegacyParts, 'tasks' | 'log'>,
  session: {
    readonly caller: Caller;
    readonly given: Given;
    /** Whether the session has a stream of server messages at the moment. */
    readonly listening: () => boolean;
    readonly send: (message: Message) => Promise<void>;
  },
) {
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
    const tell = openProgress(session, progressToken === undefined ? [] : [progressToken]);

    async function news(): Promise<void> {
      const task = await tasks.read(session.caller, taskId);
      if (task === undefined) {
        unfollow(taskId);
        return;
      }
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
      if (busy || !session.listening() || paused.has(taskId)) return;
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

    const tellNews = (): void => void look();
    return { related, progressToken, look: tellNews, stop: tasks.watch(taskId, tellNews) };
  }

  return {
    /** Follows a task from now on. */
    follow(taskId: string, how: { related: boolean; progressToken?: string | number | undefined }): void {
      const before = following.get(taskId);
      unfollow(taskId);
      following.set(taskId, start(taskId, how.related, how.progressToken ?? before?.progressToken));
      if (following.size <= MOST) return;
      const oldest = following.keys().next();
      if (oldest.done !== true) unfollow(oldest.value);
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
