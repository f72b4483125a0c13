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
/** Work that was interrupted has this long to end, beyond what its child processes have. */
const UNWIND_WITHIN_MS = 500;

export function openDispatcher(options: {
  ledger: Ledger;
  changes: Changes;
  settings: EngineSettings;
  log: Log;
  /** Monotonic. */
  nowMs: () => number;
  /** `claimedAtMs` is when the claim was sent: a lease is trusted from then on. */
  start: (task: Task, claimedAtMs: number) => Run;
}) {
  const { ledger, changes, settings, log, nowMs, start } = options;
  // Everything that works here, also what lost its term and has not ended yet.
  const working = new Set<Run>();
  const latest = new Map<string, Run>();
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  // Hints come in from the first write on; work begins when it is told to.
  let started = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  function wake(): void {
    if (!started || stopped) return;
    if (looking !== undefined) {
      lookAgain = true;
      return;
    }
    looking = look().finally(() => {
      looking = undefined;
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
      const free = settings.workers - working.size;
      if (free > 0) {
        const claimedAtMs = nowMs();
        const tasks = await ledger.claimTasks({
          holder: settings.holder,
          leaseMs: settings.leaseMs,
          limit: free,
          perOwner: settings.runningPerOwner,
        });
        for (const task of tasks) run(task, claimedAtMs);
        if (tasks.length === 0) {
          const due = await ledger.nextDue();
          // A task that is due but was not claimed waits for its owner's turn: a run that ends wakes us.
          if (due.atMs !== null && due.atMs > due.nowMs) waitMs = Math.min(waitMs, due.atMs - due.nowMs);
        } else if (working.size < settings.workers) {
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

  function run(task: Task, claimedAtMs: number): void {
    const one = start(task, claimedAtMs);
    // A task may come back while an old run of it is still being torn down: hints are about the new one.
    working.add(one);
    latest.set(task.id, one);
    void one.done.finally(() => {
      working.delete(one);
      if (latest.get(task.id) === one) latest.delete(task.id);
      wake();
    });
    // A claim that was on its way when the stop came.
    if (stopped) one.handBack();
  }

  // A task that changed under a run may have been cancelled or taken over: then its work stops at once.
  changes.onTask((taskId) => {
    const one = latest.get(taskId);
    if (one !== undefined) void check(one);
  });
  // Where other processes do not say which task they changed, each that runs here is looked at.
  changes.onResync(() => latest.forEach((one) => void check(one)));

  async function check(one: Run): Promise<void> {
    try {
      const view = await ledger.readTask(one.task.id);
      const held = view?.task.status === 'working' && view.task.term === one.task.term;
      // A lease of our own term that ended by our own finish, stop or park needs no abort.
      if (!held && latest.get(one.task.id) === one) one.lose();
    } catch {
      // The heartbeat finds out.
    }
  }

  changes.onDue(wake);

  /** Whether all work has ended within a time. */
  async function endedWithin(ms: number): Promise<boolean> {
    let grace: NodeJS.Timeout | undefined;
    const over = new Promise<boolean>((resolve) => {
      grace = setTimeout(() => resolve(false), ms);
    });
    const all = Promise.all([...working].map((one) => one.done)).then(() => true);
    const ended = await Promise.race([all, over]);
    clearTimeout(grace);
    return ended;
  }

  return {
    start(): void {
      started = true;
      wake();
    },
    running: (): number => working.size,

    /**
     * Takes no more work, lets runs reach a checkpoint for `graceMs`, then interrupts them and hands them back. Work
     * that does not listen is not waited for: its task is handed back without it, and nothing that it writes counts.
     */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      working.forEach((one) => one.handBack());
      await looking;
      if (await endedWithin(settings.graceMs)) return;
      working.forEach((one) => one.interrupt());
      if (await endedWithin(settings.killAfterMs + UNWIND_WITHIN_MS)) return;
      await Promise.all([...working].map((one) => one.abandon()));
    },
  };
}
