/**
 * What a million waiting tasks cost on SQLite: `node test/bench/million.ts [how many]`. Builds its ledger in a temporary
 * directory, prints a table, and fails when a goal is missed. Runs on the real clock.
 */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as breathe } from 'node:timers/promises';
import { openLedger, type Ledger } from '../../src/store/ledger.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { fillWaiting } from '../support/bulk-ledger.ts';
import { LEASE_MS, created } from '../support/ledger-records.ts';

const READS = 20_000;
const WARM_UP = 2_000;
const DUE = 10_000;
const BATCH = 500;

interface Line {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** The most that is allowed, where there is a goal. */
  readonly goal?: number;
}

const lines: Line[] = [];

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Milliseconds of each of many runs, sorted. */
async function timed(runs: number, work: (n: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < runs; n += 1) {
    const startedAt = performance.now();
    await work(n);
    times.push(performance.now() - startedAt);
    if (n % 100 === 0) await breathe();
  }
  return times.toSorted((a, b) => a - b);
}

function residentMiB(): number {
  return process.memoryUsage.rss() / 2 ** 20;
}

/** Reads of two ledgers in turn, so that whatever else the machine does falls on both. */
async function readsOf(ledgers: readonly { ledger: Ledger; next: () => string }[]): Promise<number[][]> {
  const times = ledgers.map((): number[] => []);
  for (let n = 0; n < READS + WARM_UP; n += 1) {
    for (const [index, { ledger, next }] of ledgers.entries()) {
      const id = next();
      const startedAt = performance.now();
      const view = await ledger.readTask(id);
      const took = performance.now() - startedAt;
      if (view === undefined) throw new Error('a task is missing');
      if (n >= WARM_UP) times[index]?.push(took);
    }
    if (n % 100 === 0) await breathe();
  }
  return times.map((list) => list.toSorted((a, b) => a - b));
}

/** A random task, the same sequence at every run, so that pages come from all over the file. */
function scattered(below: number): () => string {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return `bulk-${state % below}`;
  };
}

/** Fills a file in a process of its own: its memory is not what is measured. */
function fill(file: string, rows: number): void {
  const { status } = spawnSync(process.execPath, [import.meta.filename, 'fill', file, String(rows)], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the ledger was not filled');
}

if (process.argv[2] === 'fill') {
  const engine = await openSqlite({ file: process.argv[3] ?? '' });
  await fillWaiting(engine, Number(process.argv[4]), Date.now());
  await engine.close();
  process.exit();
}

const many = Number(process.argv[2] ?? '1000000');
const directory = await mkdtemp(join(tmpdir(), 'keyturn-million-'));
try {
  const file = join(directory, 'large.sqlite');
  fill(join(directory, 'small.sqlite'), 100);
  fill(file, many);
  const bareMiB = residentMiB();
  const small = await openSqlite({ file: join(directory, 'small.sqlite') });
  lines.push({ what: 'size of the file', value: (await stat(file)).size / 2 ** 20, unit: 'MiB' });

  const openedAt = performance.now();
  const engine = await openSqlite({ file });
  const ledger = openLedger(engine);
  lines.push({ what: 'open', value: performance.now() - openedAt, unit: 'ms', goal: 500 });
  const kidsAt = performance.now();
  await ledger.referencedKids();
  lines.push({
    what: 'vault keys in use, at start',
    value: performance.now() - kidsAt,
    unit: 'ms',
    goal: 500,
  });

  const [before = [], after = []] = await readsOf([
    { ledger: openLedger(small), next: scattered(100) },
    { ledger, next: scattered(many) },
  ]);
  await small.close();
  lines.push(
    { what: 'readTask p50, 100 tasks', value: quantile(before, 0.5), unit: 'ms' },
    { what: `readTask p50, ${many} tasks`, value: quantile(after, 0.5), unit: 'ms' },
    { what: 'readTask p99, 100 tasks', value: quantile(before, 0.99), unit: 'ms' },
    { what: `readTask p99, ${many} tasks`, value: quantile(after, 0.99), unit: 'ms' },
    {
      what: 'readTask p99, large to small',
      value: quantile(after, 0.99) / quantile(before, 0.99),
      unit: '×',
      goal: 1.5,
    },
  );

  for (let n = 0; n < 200; n += 1) await created(ledger, { owner: `busy-${n % 20}` });
  const claims = await timed(20, () =>
    ledger.claimTasks({ holder: 'w', leaseMs: LEASE_MS, limit: 10, perOwner: 10 }),
  );
  lines.push({ what: 'claimTasks of 10, p99', value: quantile(claims, 0.99), unit: 'ms', goal: 50 });
  const idle = await timed(20, async () => {
    await ledger.sweepLapsed(BATCH);
    await ledger.sweepLeases(BATCH);
    await ledger.sweepExpired(BATCH);
    await ledger.sweepSatisfied(BATCH);
  });
  lines.push({
    what: 'four sweeps with nothing to do, p99',
    value: quantile(idle, 0.99),
    unit: 'ms',
    goal: 50,
  });

  await engine.write((queries) =>
    queries.run(
      `UPDATE tasks SET deadline = keyturn_now() WHERE id IN (SELECT id FROM tasks WHERE deadline > 0 ORDER BY deadline LIMIT ?)`,
      DUE,
    ),
  );
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const sweptAt = performance.now();
  let swept = 0;
  for (let size = 1; size > 0;) {
    size = (await ledger.sweepLapsed(BATCH)).length;
    swept += size;
    await breathe();
  }
  lines.push({
    what: `sweepLapsed of ${swept} due, in batches of ${BATCH}`,
    value: performance.now() - sweptAt,
    unit: 'ms',
    goal: 2_000,
  });
  delay.disable();
  lines.push({
    what: 'longest stop of the event loop while sweeping',
    value: delay.max / 1e6,
    unit: 'ms',
    goal: 250,
  });
  if (swept !== Math.min(DUE, many)) throw new Error(`swept ${swept}`);
  lines.push(
    { what: 'resident memory before anything is opened', value: bareMiB, unit: 'MiB' },
    { what: 'resident memory at the end', value: residentMiB(), unit: 'MiB', goal: 150 },
  );
  await engine.close();
} finally {
  await rm(directory, { recursive: true, force: true });
}

for (const { what, value, unit, goal } of lines) {
  const verdict = goal === undefined ? '' : value <= goal ? `ok (≤ ${goal})` : `MISSED (≤ ${goal})`;
  process.stdout.write(`${what.padEnd(50)} ${value.toFixed(3).padStart(12)} ${unit.padEnd(4)} ${verdict}\n`);
}
if (lines.some((line) => line.goal !== undefined && line.value > line.goal)) process.exitCode = 1;
