/** Metrics in the Prometheus format. Labels are from closed sets: never an owner, a task or a text. */
import type { FastifyInstance } from 'fastify';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Counts, Meter, Timings } from '../engine/meter.ts';
import type { Ledger } from '../store/ledger.ts';

const COUNTERS: Record<keyof Counts, { help: string; labels: string[] }> = {
  task_ended: { help: 'Tasks that ended, by status and reason.', labels: ['status', 'reason'] },
  task_started: { help: 'Tasks that were started, by tool.', labels: ['tool'] },
  task_stopped: { help: 'Stops for a person, by what was asked for.', labels: ['kind'] },
  refresh: { help: 'Refreshes, by outcome.', labels: ['outcome'] },
  exchange: { help: 'Authorization responses, by outcome.', labels: ['outcome'] },
  refusal: { help: 'Refusals, by reason.', labels: ['reason'] },
};

const HISTOGRAMS: Record<keyof Timings, { help: string; labels: string[]; bucketsMs: number[] }> = {
  wait: {
    help: 'From the stop to the grant.',
    labels: [],
    bucketsMs: [1_000, 10_000, 60_000, 300_000, 1_800_000],
  },
  teardown: {
    help: 'From the loss of a term to the end of its work.',
    labels: [],
    bucketsMs: [1, 10, 100, 1_000, 5_000],
  },
};

/** A meter, and the page that shows it. */
export interface Metrics {
  readonly meter: Meter;
  mount(app: FastifyInstance, ledger: Ledger): void;
}

export function openMetrics(): Metrics {
  const registry = new Registry();
  const counters = new Map(
    Object.entries(COUNTERS).map(([name, { help, labels }]) => [
      name,
      new Counter({ name: `keyturn_${name}_total`, help, labelNames: labels, registers: [registry] }),
    ]),
  );
  const histograms = new Map(
    Object.entries(HISTOGRAMS).map(([name, { help, labels, bucketsMs }]) => [
      name,
      new Histogram({
        name: `keyturn_${name}_seconds`,
        help,
        labelNames: labels,
        buckets: bucketsMs.map((ms) => ms / 1_000),
        registers: [registry],
      }),
    ]),
  );
  return {
    meter: {
      count: (name, labels) => counters.get(name)?.inc({ ...labels }),
      time: (name, ms, labels) => histograms.get(name)?.observe({ ...labels }, ms / 1_000),
    },
    mount(app, ledger) {
      const due = new Gauge({
        name: 'keyturn_tasks_due',
        help: 'Tasks that wait for a worker.',
        registers: [registry],
      });
      const leased = new Gauge({
        name: 'keyturn_tasks_running',
        help: 'Tasks that workers hold.',
        registers: [registry],
      });
      app.get('/metrics', async (_request, reply) => {
        const now = await ledger.countTasks();
        due.set(now.due);
        leased.set(now.leased);
        return reply.header('content-type', registry.contentType).send(await registry.metrics());
      });
    },
  };
}
