/** What only SQLite does: one file, its clock over restarts and between processes, and whatever befalls the file. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, open as openFile, rm, stat, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Refusal } from '../../src/errors.ts';
import { openLedger } from '../../src/store/ledger.ts';
import type { Hint, SqlEngine } from '../../src/store/sql.ts';
import { openSqlite, type SqliteOptions } from '../../src/store/sqlite.ts';
import { ALICE, created, exchanged, waiting } from '../support/ledger-records.ts';
import { START_MS } from '../support/ledgers.ts';

let directory: string;
let file: string;
const engines: SqlEngine[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keyturn-sqlite-'));
  file = join(directory, 'ledger.sqlite');
});
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
  await rm(directory, { recursive: true, force: true });
});

async function open(over: Partial<SqliteOptions> = {}): Promise<SqlEngine> {
  const engine = await openSqlite({ file, ...over });
  engines.push(engine);
  return engine;
}

const reasonOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no refusal',
    (error: unknown) => (error instanceof Refusal ? error.reason : String(error)),
  );

/** A clock of one process: wall and monotonic apart. */
function clock() {
  const hands = { wallMs: START_MS, monotonicMs: 1_000 };
  return {
    hands,
    options: { wallMs: () => hands.wallMs, monotonicMs: () => hands.monotonicMs },
    pass(ms: number) {
      hands.wallMs += ms;
      hands.monotonicMs += ms;
    },
  };
}

describe('the clock', () => {
  it('goes on by the monotonic clock when the wall is set back, and follows the wall when it is set ahead', async () => {
    const time = clock();
    const ledger = openLedger(await open(time.options));
    expect(await ledger.nowMs()).toBe(START_MS);
    time.hands.wallMs -= 3_600_000;
    expect(await ledger.nowMs()).toBe(START_MS);
    time.pass(500);
    expect(await ledger.nowMs()).toBe(START_MS + 500);
    time.hands.wallMs = START_MS + 7_200_000;
    expect(await ledger.nowMs()).toBe(START_MS + 7_200_000);
    time.hands.wallMs = START_MS;
    time.pass(1);
    expect(await ledger.nowMs()).toBe(START_MS + 7_200_001);
  });

  it('reopens no wait after a restart under a wall that was set back', async () => {
    const time = clock();
    const before = await open(time.options);
    const { task, question } = await waiting(openLedger(before));
    const { stateHash, sealed } = await exchanged(openLedger(before), question);
    time.hands.wallMs = task.deadlineMs ?? 0;
    await openLedger(before).recordEvent({ event: 'any write', owner: null, outcome: 'done' });
    await before.close();
    time.hands.wallMs = START_MS;
    time.hands.monotonicMs = 0;
    const ledger = openLedger(await open(time.options));
    expect(await ledger.nowMs()).toBeGreaterThanOrEqual(task.deadlineMs ?? 0);
    expect((await ledger.readTask(task.id))?.task.status).toBe('failed');
    expect((await ledger.commitGrant({ stateHash, grant: sealed, again: null })).resumed).toEqual([]);
    expect((await ledger.cancelTask(ALICE, task.id, '.')).won).toBe(false);
  });

  it('is one for two processes: what one of them has seen pass is over for the other', async () => {
    const [ahead, behind] = [clock(), clock()];
    const one = openLedger(await open(ahead.options));
    const two = openLedger(await open(behind.options));
    const { task, question } = await waiting(one);
    const { stateHash, sealed } = await exchanged(two, question);
    ahead.pass((task.deadlineMs ?? 0) - START_MS);
    expect((await two.readTask(task.id))?.task.status).toBe('input_required');
    await one.recordEvent({ event: 'any write', owner: null, outcome: 'done' });
    expect((await two.readTask(task.id))?.task.status).toBe('failed');
    expect((await two.commitGrant({ stateHash, grant: sealed, again: null })).resumed).toEqual([]);
    // And on from there by its own steps.
    behind.hands.monotonicMs += 5;
    expect(await two.nowMs()).toBe((task.deadlineMs ?? 0) + 5);
  });
});

describe('the file', () => {
  it.each(['', ':memory:', ':x'])('named %j is refused', async (name) => {
    expect(await reasonOf(open({ file: name }))).toBe('configuration_invalid');
  });

  it('in a directory that is missing is refused', async () => {
    expect(await reasonOf(open({ file: join(directory, 'missing', 'ledger.sqlite') }))).toBe(
      'store_unavailable',
    );
  });

  it('that is no database is refused and left as it is', async () => {
    await writeFile(file, 'x'.repeat(10_000));
    expect(await reasonOf(open())).toBe('store_corrupt');
    expect((await stat(file)).size).toBe(10_000);
  });

  it('with damaged pages is named as damaged when they are read', async () => {
    const engine = await open();
    const ledger = openLedger(engine);
    for (let n = 0; n < 200; n += 1) await created(ledger);
    await engine.close();
    const { size } = await stat(file);
    const handle = await openFile(file, 'r+');
    // Everything but the first page, which holds the list of tables.
    await handle.write(Buffer.alloc(size - 4_096, 0xa5), 0, size - 4_096, 4_096);
    await handle.close();
    expect(
      await reasonOf(open().then((again) => again.read((queries) => queries.all('SELECT * FROM tasks')))),
    ).toBe('store_corrupt');
  });

  it('of a newer version is refused', async () => {
    await (await open()).close();
    const db = new DatabaseSync(file);
    db.exec(`UPDATE meta SET value = '999' WHERE name = 'schema'`);
    db.close();
    expect(await reasonOf(open())).toBe('store_newer');
  });

  it('that may not be written is refused', async () => {
    const engine = await open();
    await created(openLedger(engine));
    await engine.close();
    await chmod(file, 0o444);
    await chmod(directory, 0o555);
    const store = new URL('../../src/store/sqlite.ts', import.meta.url).href;
    const script = `import { openSqlite } from ${JSON.stringify(store)};
      await openSqlite({ file: ${JSON.stringify(file)} }).then(() => console.log('opened'), (error) => console.log(error.reason));`;
    // The superuser may write anything; nobody may not.
    const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      ...nobody,
    });
    expect(stdout.trim()).toBe('store_unavailable');
    await chmod(directory, 0o755);
    expect(await (await open()).read((queries) => queries.all(`SELECT id FROM tasks`))).toHaveLength(1);
  });

  it('that another process holds is waited for without blocking, then refused, then written again', async () => {
    const engine = await open({ busyForMs: 1_500 });
    const ledger = openLedger(engine);
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 5);
    expect(await reasonOf(created(ledger))).toBe('store_unavailable');
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(10);
    const waited = created(ledger);
    await sleep(50);
    other.exec('ROLLBACK');
    other.close();
    const task = await waited;
    expect((await ledger.readTask(task.id))?.task).toEqual(task);
  });

  it('on a full disk refuses the write, keeps everything that was written, and goes on when there is room', async () => {
    const engine = await open();
    const ledger = openLedger(engine);
    const kept = [await created(ledger)];
    // SQLite's own limit of pages gives the same error as a full disk (SQLITE_FULL).
    const limit = (pages: number) =>
      engine.write((queries) => queries.all(`PRAGMA max_page_count = ${pages}`));
    await limit(60);
    let reason = 'no refusal';
    for (let n = 0; n < 500 && reason === 'no refusal'; n += 1) {
      reason = await reasonOf(
        created(ledger, { args: 'x'.repeat(2_000) }).then((task) => {
          kept.push(task);
        }),
      );
    }
    expect(reason).toBe('store_unavailable');
    const rows = await engine.read((queries) => queries.all<{ id: string }>(`SELECT id FROM tasks`));
    expect(rows.map((row) => row.id).toSorted()).toEqual(kept.map((task) => task.id).toSorted());
    await limit(1_000_000);
    await created(ledger);
  });
});

describe('writing', () => {
  it('a transaction that fails changes nothing and tells nobody', async () => {
    const engine = await open();
    const heard: Hint[] = [];
    engine.onHint((hint) => heard.push(hint));
    await expect(
      engine.write(async (queries) => {
        await queries.run(`INSERT INTO meta (name, value) VALUES ('half', '1')`);
        await queries.hint({ kind: 'due' });
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    await engine.write((queries) => queries.hint({ kind: 'resync' }));
    await sleep(1);
    expect(heard).toEqual([{ kind: 'resync' }]);
    expect(await engine.read((queries) => queries.all(`SELECT name FROM meta WHERE name = 'half'`))).toEqual(
      [],
    );
  });

  it('of another process on the same file is told as a resync', async () => {
    const [one, two] = [await open(), await open()];
    const heard: Hint[] = [];
    two.onHint((hint) => heard.push(hint));
    await created(openLedger(one));
    for (let n = 0; n < 200 && heard.length === 0; n += 1) await sleep(10);
    expect(heard).toContainEqual({ kind: 'resync' });
  });

  it('after closing is refused, and what was under way is finished first', async () => {
    const engine = await open();
    const ledger = openLedger(engine);
    const last = created(ledger);
    await engine.close();
    expect((await last).status).toBe('working');
    expect(await reasonOf(created(ledger))).toBe('store_unavailable');
    expect(await reasonOf(ledger.nowMs())).toBe('store_unavailable');
  });

  it('reads see only what is committed', async () => {
    const engine = await open();
    await engine.write(async (queries) => {
      await queries.run(`INSERT INTO meta (name, value) VALUES ('mine', '1')`);
      const seen = await engine.read((reads) => reads.all(`SELECT name FROM meta WHERE name = 'mine'`));
      expect(seen).toEqual([]);
    });
  });
});
