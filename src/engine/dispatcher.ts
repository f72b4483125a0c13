/**
 * Hands due tasks to workers of this process. Hints make it quick, the ledger makes it right: it also looks by itself,
 * so that a lost hint costs a second at most and a doubled one nothing.
 */
import type { Log } from '../log.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Task } from '../store/records.ts';
import type { Changes } from './changes.ts';
import type { Run } from './run.ts';
import type { EngineSettings } from './settings.ts';

/** Looks without a hint at least this often. */
const LOOK_EVERY_MS = 1_000;

export function openDispatcher(options: {
  ledger: Ledger;
  changes: Changes;
  settings: EngineSettings;
  log: Log;
  start: (task: Task) => Run;
}) {
  const { ledger, changes, settings, log, start } = options;
  const running = new Map<string, Run>();
  let looking = false;
  let lookAgain = false;
  // Hints come in from the first write on; work begins when it is told to.
  let started = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  function wake(): void {
    if (!started || stopped) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    void look().finally(() => {
      looking = false;
      if (lookAgain) {
        lookAgain = false;
        wake();
      }
    });
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    let waitMs = LOOK_EVERY_MS;
    try {
      const free = settings.workers - running.size;
      if (free > 0) {
        const tasks = await ledger.claimTasks({
          holder: settings.holder,
          leaseMs: settings.leaseMs,
          limit: free,
          perOwner: settings.runningPerOwner,
        });
        tasks.forEach(run);
        if (tasks.length === 0) {
          const { atMs, nowMs } = await ledger.nextDue();
          // A task that is due but was not claimed waits for its owner's turn: a run that ends wakes us.
          if (atMs !== null && atMs > nowMs) waitMs = Math.min(waitMs, atMs - nowMs);
        } else if (running.size < settings.workers) {
          lookAgain = true;
        }
      }
    } catch (error) {
      log.error('dispatch.failed', { error });
    }
    if (stopped) return;
    timer = setTimeout(wake, waitMs);
    timer.unref();
  }

  function run(task: Task): void {
    const one = start(task);
    // A task that came back while an old run of it is still being torn down replaces it here.
    running.set(task.id, one);
    void one.done.finally(() => {
      if (running.get(task.id) === one) running.delete(task.id);
      wake();
    });
  }

  // A task that changed under a run may have been cancelled or taken over: then its work stops at once.
  changes.onTask((taskId) => {
    const one = running.get(taskId);
    if (one !== undefined) void check(one);
  });

  async function check(one: Run): Promise<void> {
    try {
      const view = await ledger.readTask(one.task.id);
      const held = view?.task.status === 'working' && view.task.term === one.task.term;
      // A lease of our own term that ended by our own finish, stop or park needs no abort.
      if (!held && running.get(one.task.id) === one) one.lose();
    } catch {
      // The heartbeat finds out.
    }
  }

  changes.onDue(wake);

  return {
    start(): void {
      started = true;
      wake();
    },
    running: (): number => running.size,

    /** Takes no more work, lets runs reach a checkpoint for `graceMs`, then interrupts them and hands them back. */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      const runs = [...running.values()];
      runs.forEach((one) => one.handBack());
      const all = Promise.all(runs.map((one) => one.done));
      let grace: NodeJS.Timeout | undefined;
      const over = new Promise<void>((resolve) => {
        grace = setTimeout(resolve, settings.graceMs);
      });
      await Promise.race([all, over]);
      clearTimeout(grace);
      runs.forEach((one) => one.interrupt());
      await all;
    },
  };
}
