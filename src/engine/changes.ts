/**
 * Who wants to know about changes of tasks in this process: pollers' cache, streams, blocked calls. Fed by the
 * ledger's hints; a lost hint is made good by whoever waits, since every wait also looks again after a while.
 */
import type { Hint } from '../store/sql.ts';

/** A wait for the next change, listening from the moment it was made. */
export interface NextChange {
  /** Resolves at the next change, after `ms`, or when `signal` aborts: whichever is first. */
  within(ms: number, signal: AbortSignal): Promise<void>;
  stop(): void;
}

/** Changes of tasks. */
export type Changes = ReturnType<typeof openChanges>;

export function openChanges(onHint: (listener: (hint: Hint) => void) => () => void) {
  const watchers = new Map<string, Set<() => void>>();
  const onTask = new Set<(taskId: string) => void>();
  const onResync = new Set<() => void>();
  const onDue = new Set<() => void>();
  const onConnection = new Set<(connectionId: string) => void>();
  // Counts changes since the last resync, per task that changed lately: tells a reader that its reading is old.
  let counted = new Map<string, number>();
  let epoch = 0;

  const stop = onHint((hint) => {
    switch (hint.kind) {
      case 'task':
        if (counted.size > 50_000) {
          counted = new Map();
          epoch += 1;
        }
        counted.set(hint.taskId, (counted.get(hint.taskId) ?? 0) + 1);
        onTask.forEach((tell) => tell(hint.taskId));
        watchers.get(hint.taskId)?.forEach((tell) => tell());
        return;
      case 'due':
        onDue.forEach((tell) => tell());
        return;
      case 'connection':
        onConnection.forEach((tell) => tell(hint.connectionId));
        return;
      case 'resync':
        counted = new Map();
        epoch += 1;
        onResync.forEach((tell) => tell());
        onDue.forEach((tell) => tell());
        watchers.forEach((set) => set.forEach((tell) => tell()));
        return;
    }
  });

  function watch(taskId: string, tell: () => void): () => void {
    const set = watchers.get(taskId) ?? new Set();
    set.add(tell);
    watchers.set(taskId, set);
    return () => {
      set.delete(tell);
      if (set.size === 0) watchers.delete(taskId);
    };
  }

  return {
    watch,
    onTask: (tell: (taskId: string) => void) => onTask.add(tell),
    onResync: (tell: () => void) => onResync.add(tell),
    onDue: (tell: () => void) => onDue.add(tell),
    onConnection: (tell: (connectionId: string) => void) => onConnection.add(tell),

    /** A number that differs after any change of the task. */
    generation: (taskId: string): string => `${epoch}:${counted.get(taskId) ?? 0}`,

    /** How many tasks somebody is watching. */
    watched: (): number => watchers.size,

    next(taskId: string): NextChange {
      let changed = false;
      let wake = (): void => undefined;
      const end = watch(taskId, () => {
        changed = true;
        wake();
      });
      return {
        within: (ms, signal) =>
          new Promise((resolve) => {
            if (changed || signal.aborted) {
              resolve();
              return;
            }
            const finish = (): void => {
              clearTimeout(timer);
              signal.removeEventListener('abort', finish);
              resolve();
            };
            const timer = setTimeout(finish, ms);
            signal.addEventListener('abort', finish, { once: true });
            wake = finish;
          }),
        stop: end,
      };
    },

    stop,
  };
}
