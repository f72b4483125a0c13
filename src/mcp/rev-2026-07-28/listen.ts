/**
 * `subscriptions/listen` (basic/patterns/subscriptions; tasks, "Task Status Notifications"): one stream, first what is
 * honoured, then every change of the caller's own tasks as a complete task, filtered by what this very request declared.
 *
 * A reader that falls behind misses states in between and gets the current one; nothing is queued for it. Foreign and
 * unknown ids are left out of what is honoured, without a word.
 */
import type { ServerResponse } from 'node:http';
import { Refusal } from '../../errors.ts';
import type { Declared } from '../../engine/caller.ts';
import type { Tasks } from '../../engine/tasks.ts';
import type { Log } from '../../log.ts';
import type { Authenticated } from '../bearer.ts';
import type { Catalogue } from '../catalogue.ts';
import { isObject, resultText, type JsonObject, type RpcId, type WireError } from '../json-rpc.ts';
import { missingTasks } from './envelope.ts';
import { detailedTask, type Reach } from './detailed-task.ts';
import { openEventStream, type EventStream } from './event-stream.ts';

/** What a client wants to hear of; types that are not offered here are not looked at. */
export interface Filter {
  readonly toolsListChanged: boolean;
  /** Undefined when the client named none. */
  readonly taskIds: readonly string[] | undefined;
}

/** Limits of streams. */
export interface ListenSettings {
  readonly streamsPerOwner: number;
  readonly tasksPerStream: number;
  readonly keepAliveMs: number;
  readonly patienceMs: number;
}

/** What is used where the configuration says nothing. */
export const LISTEN_SETTINGS: ListenSettings = {
  streamsPerOwner: 16,
  tasksPerStream: 256,
  keepAliveMs: 15_000,
  patienceMs: 30_000,
};

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
/** Longest delay that a timer takes. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Reads the filter. @throws Refusal `arguments_invalid`. */
export function readFilter(params: JsonObject, most: number): Filter {
  const given = params['notifications'];
  if (!isObject(given)) throw wrong('params.notifications: must be an object');
  const { toolsListChanged, taskIds } = given;
  if (taskIds === undefined) return { toolsListChanged: toolsListChanged === true, taskIds: undefined };
  if (!Array.isArray(taskIds) || !taskIds.every((id): id is string => typeof id === 'string')) {
    throw wrong('params.notifications.taskIds: must be a list of texts');
  }
  const distinct = [...new Set(taskIds)];
  if (distinct.length > most) throw wrong(`params.notifications.taskIds: must have at most ${most} ids`);
  return { toolsListChanged: toolsListChanged === true, taskIds: distinct };
}

function wrong(message: string): Refusal {
  return new Refusal('arguments_invalid', { message });
}

/** Opens what serves streams. */
export function openListening(options: {
  tasks: Tasks;
  catalogue: Catalogue;
  settings: ListenSettings;
  reachOf: (declared: Declared) => Reach;
  /** `_meta` of results. */
  resultMeta: JsonObject;
  scrub: (text: string) => string;
  wallMs: () => number;
  log: Log;
}) {
  const { tasks, catalogue, settings, log } = options;
  const perOwner = new Map<string, number>();
  const open = new Set<() => void>();

  function takePlace(owner: string): () => void {
    const many = perOwner.get(owner) ?? 0;
    if (many >= settings.streamsPerOwner) {
      throw new Refusal('too_many_requests', { facts: { limit: 'streams', open: many } });
    }
    perOwner.set(owner, many + 1);
    return () => {
      const left = (perOwner.get(owner) ?? 1) - 1;
      if (left === 0) perOwner.delete(owner);
      else perOwner.set(owner, left);
    };
  }

  /**
   * Serves a stream, or says why not before its first byte. `takeOver` gives the raw response.
   *
   * @throws Refusal `arguments_invalid`, `too_many_requests`.
   */
  async function serve(call: {
    readonly id: RpcId;
    readonly params: JsonObject;
    readonly caller: Authenticated;
    readonly declared: Declared;
    readonly takeOver: () => ServerResponse;
  }): Promise<WireError | undefined> {
    const { id, caller, declared } = call;
    const filter = readFilter(call.params, settings.tasksPerStream);
    if (filter.taskIds !== undefined && !declared.tasks) return missingTasks();
    const leavePlace = takePlace(caller.owner);
    const ends: (() => void)[] = [leavePlace];
    let over = false;
    const atEnd = (end: () => void): void => {
      if (over) end();
      else ends.push(end);
    };
    const dirty = new Set<string>();
    const told = new Map<string, number>();
    let stream: EventStream | undefined;
    let flushing = false;

    /** Watching begins before the first look, so that no change falls between. */
    async function honour(taskIds: readonly string[]): Promise<string[]> {
      const own: string[] = [];
      for (const taskId of taskIds) {
        const stop = tasks.watch(taskId, () => {
          dirty.add(taskId);
          void flush();
        });
        if ((await tasks.read(caller, taskId)) === undefined) stop();
        else {
          own.push(taskId);
          atEnd(stop);
        }
      }
      return own;
    }

    function notify(method: string, params: JsonObject): void {
      const message = { jsonrpc: '2.0', method, params: { ...params, _meta: { [SUBSCRIPTION_ID]: id } } };
      stream?.send(options.scrub(JSON.stringify(message)));
    }

    /** Tells the current state of what has changed, one after the other, as long as the reader keeps up. */
    async function flush(): Promise<void> {
      if (flushing) return;
      flushing = true;
      try {
        while (stream?.ready() === true) {
          const next = dirty.keys().next();
          if (next.done === true) return;
          dirty.delete(next.value);
          const task = await tasks.read(caller, next.value);
          if (task === undefined || told.get(next.value) === task.rev) continue;
          told.set(next.value, task.rev);
          notify('notifications/tasks', detailedTask(task, options.reachOf(declared)));
        }
      } catch (error) {
        // Looked at again with the next comment.
        log.warn('mcp.stream', { error });
      } finally {
        flushing = false;
      }
    }

    let own: readonly string[];
    try {
      own = filter.taskIds === undefined ? [] : await honour(filter.taskIds);
    } catch (error) {
      ends.forEach((end) => end());
      throw error;
    }

    const close = (): void => {
      const result = { resultType: 'complete', _meta: { ...options.resultMeta, [SUBSCRIPTION_ID]: id } };
      stream?.end(resultText(id, result));
    };
    open.add(close);
    stream = openEventStream(call.takeOver(), {
      keepAliveMs: settings.keepAliveMs,
      patienceMs: settings.patienceMs,
      onRoom: () => {
        // Hints may get lost, time alone may end a task, and an open stream keeps a host lease alive (R27).
        own.forEach((taskId) => dirty.add(taskId));
        void flush();
      },
      onClosed: () => {
        over = true;
        open.delete(close);
        ends.forEach((end) => end());
      },
    });
    notify('notifications/subscriptions/acknowledged', {
      notifications: {
        ...(filter.toolsListChanged ? { toolsListChanged: true } : {}),
        ...(filter.taskIds === undefined ? {} : { taskIds: own }),
      },
    });
    if (filter.toolsListChanged) {
      atEnd(catalogue.onChange(() => notify('notifications/tools/list_changed', {})));
    }
    if (caller.validUntilMs !== undefined) {
      // A stream does not outlive what proved its reader.
      const leftMs = Math.min(Math.max(0, caller.validUntilMs - options.wallMs()), LONGEST_TIMER_MS);
      const timer = setTimeout(close, leftMs);
      atEnd(() => clearTimeout(timer));
    }
    own.forEach((taskId) => dirty.add(taskId));
    void flush();
    return undefined;
  }

  return {
    serve,
    /** How many streams are open. */
    open: (): number => open.size,
    /** Ends all streams with their results. */
    close: (): void => open.forEach((end) => end()),
  };
}
