/**
 * Does what time alone brings about, in bounded batches with room for other work in between. Every node may sweep; the
 * ledger's conditions make that harmless.
 */
import { setImmediate as breathe } from 'node:timers/promises';
import type { Log } from '../log.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Vault } from '../vault/vault.ts';
import type { Asking } from './asking.ts';
import type { Meter } from './meter.ts';
import type { EngineSettings } from './settings.ts';

/** Connections over their age that one round ends. */
const AGED_AT_A_TIME = 20;

export function openSweeper(options: {
  ledger: Ledger;
  vault: Vault;
  asking: Asking;
  settings: EngineSettings;
  log: Log;
  meter: Meter;
  /** Ends connections that are over their age. @returns how many. */
  endAged: (limit: number) => Promise<number>;
  /** Finishes authorization attempts whose holder vanished. */
  finishAttempts: () => Promise<number>;
}) {
  const { ledger, vault, asking, settings, log, meter } = options;
  const { sweepBatch } = settings;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  let stopped = false;
  let round = 0;

  /** Repeats a batch until it comes back short. */
  async function drain(batch: () => Promise<number>): Promise<void> {
    for (let many = sweepBatch; many >= sweepBatch && !stopped;) {
      many = await batch();
      await breathe();
    }
  }

  const steps: { name: string; everyRounds: number; run: () => Promise<void> }[] = [
    {
      name: 'leases',
      everyRounds: 1,
      run: () =>
        drain(async () => {
          const { due, givenUp } = await ledger.sweepLeases(sweepBatch);
          for (const taskId of givenUp) log.error('task.given up', { taskId });
          return due.length + givenUp.length;
        }),
    },
    {
      name: 'lapsed',
      everyRounds: 1,
      run: () =>
        drain(async () => {
          const ended = await ledger.sweepLapsed(sweepBatch);
          ended.forEach(() => meter.count('task_ended', { status: 'failed', reason: 'lapsed' }));
          if (ended.length > 0) log.info('tasks.lapsed', { many: ended.length });
          return ended.length;
        }),
    },
    {
      name: 'reasks',
      everyRounds: 1,
      run: () =>
        drain(async () => {
          const due = await ledger.dueReasks(sweepBatch);
          for (const old of due) {
            await ledger.reask(old.id, { ...(await asking.newLink()), message: old.message });
          }
          return due.length;
        }),
    },
    {
      name: 'attempts',
      everyRounds: 1,
      run: async () => {
        await options.finishAttempts();
      },
    },
    {
      name: 'satisfied',
      everyRounds: 5,
      run: async () => {
        const resumed = await ledger.sweepSatisfied(sweepBatch);
        if (resumed.length > 0) log.warn('waits.woken late', { many: resumed.length });
      },
    },
    {
      name: 'expired',
      everyRounds: 5,
      run: () => drain(async () => (await ledger.sweepExpired(sweepBatch)).length),
    },
    {
      name: 'orphans',
      everyRounds: 10,
      run: () =>
        drain(async () => {
          const due = await ledger.dueOrphans(sweepBatch);
          for (const recordKey of due) {
            // The row goes last: a deletion that failed is tried again.
            await vault.delete(recordKey);
            await ledger.forgetOrphan(recordKey);
          }
          return due.length;
        }),
    },
    {
      name: 'aged',
      everyRounds: 60,
      run: async () => {
        // Each may ask its provider to revoke: a few at a time, the rest in later rounds.
        const many = await options.endAged(AGED_AT_A_TIME);
        if (many > 0) log.info('connections.aged', { many });
      },
    },
    { name: 'audit', everyRounds: 2, run: () => drain(() => ledger.chainAudit(sweepBatch)) },
  ];

  async function sweep(all: boolean): Promise<void> {
    round += 1;
    for (const step of steps) {
      if (stopped || (!all && round % step.everyRounds !== 0)) continue;
      try {
        await step.run();
      } catch (error) {
        log.error('sweep.failed', { step: step.name, error });
      }
    }
  }

  function schedule(): void {
    // Jitter: nodes that started together do not sweep together.
    timer = setTimeout(
      () => {
        current = sweep(false).finally(() => {
          if (!stopped) schedule();
        });
      },
      settings.sweepEveryMs * (0.75 + Math.random() / 2),
    );
    timer.unref();
  }

  return {
    start: schedule,
    /** Every step, now. */
    sweepNow: () => sweep(true),
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}
