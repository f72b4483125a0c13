/** What only PostgreSQL does: start together, lose connections, listen to each other, run a deadlock again. */
import { createServer, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Refusal } from '../../src/errors.ts';
import { openLedger } from '../../src/store/ledger.ts';
import { openPostgres, type PostgresOptions } from '../../src/store/postgres.ts';
import { payloads, received } from '../../src/store/postgres-hints.ts';
import type { Hint, SqlEngine } from '../../src/store/sql.ts';
import { secret, type Secret } from '../../src/secret.ts';
import { created } from '../support/ledger-records.ts';
import { openPostgresServer, type PostgresServer } from '../support/postgres.ts';

let server: PostgresServer;
let admin: pg.Client;
const engines: SqlEngine[] = [];
let schemas = 0;
const schemaName = () => `only_${process.pid}_${(schemas += 1)}`;

beforeAll(async () => {
  server = await openPostgresServer();
  admin = new pg.Client({ connectionString: server.connectionString.reveal() });
  await admin.connect();
});
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

async function open(over: Partial<PostgresOptions> = {}): Promise<SqlEngine> {
  const engine = await openPostgres({
    connectionString: server.connectionString,
    schema: schemaName(),
    ...over,
  });
  engines.push(engine);
  return engine;
}

const reasonOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no refusal',
    (error: unknown) => (error instanceof Refusal ? error.reason : String(error)),
  );

/** Waits until a condition holds; bounded. */
async function until(holds: () => boolean): Promise<void> {
  for (let n = 0; n < 500 && !holds(); n += 1) await sleep(10);
  expect(holds()).toBe(true);
}

/** A way to the server that a test can cut. */
async function cuttable(): Promise<{
  to: Secret;
  cut: () => void;
  refuse: (yes: boolean) => void;
  close: () => void;
}> {
  const target = new URL(server.connectionString.reveal());
  const port = Number(target.port);
  const sockets = new Set<Socket>();
  let refusing = false;
  const relay = createServer((near) => {
    if (refusing) {
      near.destroy();
      return;
    }
    const far = connect(port, target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  await new Promise<void>((listening) => relay.listen(0, '127.0.0.1', listening));
  const address = relay.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  target.port = String(address.port);
  return {
    to: secret(target.href),
    cut: () => sockets.forEach((socket) => socket.destroy()),
    refuse: (yes) => (refusing = yes),
    close: () => {
      sockets.forEach((socket) => socket.destroy());
      relay.close();
    },
  };
}

describe('starting', () => {
  it('ten nodes that start together on an empty database migrate once and all work', async () => {
    const schema = schemaName();
    const nodes = await Promise.all(Array.from({ length: 10 }, () => open({ schema, maxConnections: 2 })));
    for (const node of nodes) await created(openLedger(node));
    const { rows } = await admin.query(`SELECT count(*)::int AS many FROM ${schema}.tasks`);
    expect(rows).toEqual([{ many: 10 }]);
  });

  it('a ledger of a newer version is refused and left as it is', async () => {
    const schema = schemaName();
    await open({ schema });
    await admin.query(`UPDATE ${schema}.meta SET value = '999' WHERE name = 'schema'`);
    expect(await reasonOf(open({ schema }))).toBe('store_newer');
    const { rows } = await admin.query(`SELECT value FROM ${schema}.meta WHERE name = 'schema'`);
    expect(rows).toEqual([{ value: '999' }]);
  });

  it('a table that a crash would empty is refused by name', async () => {
    const schema = schemaName();
    await open({ schema });
    await admin.query(`ALTER TABLE ${schema}.vault_records SET UNLOGGED`);
    await expect(open({ schema })).rejects.toThrow(/unlogged.*vault_records/);
  });

  it('every table is logged, and a commit is durable even where the server’s default is not', async () => {
    const schema = schemaName();
    const user = `lax_${schema}`;
    await admin.query(`CREATE ROLE ${user} SUPERUSER LOGIN PASSWORD 'p'`);
    await admin.query(`ALTER ROLE ${user} SET synchronous_commit = off`);
    const to = new URL(server.connectionString.reveal());
    to.username = user;
    to.password = 'p';
    const engine = await open({ schema, connectionString: secret(to.href) });
    const row = await engine.write((queries) =>
      queries.get<{ sync: string }>(`SELECT current_setting('synchronous_commit') AS sync`),
    );
    expect(row?.sync).toBe('on');
  });

  it.each([
    ['no server', 'postgresql://a:b@127.0.0.1:1/x', 'store_unavailable'],
    ['a wrong password', 'wrong', 'store_unavailable'],
    ['an unreadable string', 'postgresql://user:p4ssw0rd@ho st:x/y', 'configuration_invalid'],
  ])('%s is named, and the password stays out of it', async (_, to, reason) => {
    const url = new URL(server.connectionString.reveal());
    url.password = 'p4ssw0rd';
    const refused = await open({ connectionString: secret(to === 'wrong' ? url.href : to) }).catch(
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({ name: 'Refusal', reason });
    expect(JSON.stringify(refused) + String(refused) + String((refused as Error).cause)).not.toContain(
      'p4ssw0rd',
    );
  });
});

describe('trouble', () => {
  it('connections that the server ends, idle or in a transaction, end no process and are replaced', async () => {
    const engine = await open({ applicationName: 'victim' });
    const ledger = openLedger(engine);
    await Promise.all(Array.from({ length: 5 }, () => created(ledger)));
    const kill = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'`;
    await admin.query(kill);
    const reason = await reasonOf(
      engine.write(async (queries) => {
        await queries.run(`DELETE FROM tasks`);
        await admin.query(kill);
        await sleep(50);
        await queries.nowMs();
      }),
    );
    expect(['store_unavailable', 'no refusal']).toContain(reason);
    for (let n = 0; n < 12; n += 1) await reasonOf(created(ledger));
    const rows = await engine.read((queries) => queries.all(`SELECT id FROM tasks`));
    expect(rows.length).toBeGreaterThanOrEqual(5);
  });

  it('a transaction whose connection breaks is refused as retryable and changes nothing', async () => {
    const way = await cuttable();
    const engine = await open({ connectionString: way.to, listen: false });
    const reason = await reasonOf(
      engine.write(async (queries) => {
        await queries.run(`INSERT INTO meta (name, value) VALUES ('half', '1')`);
        way.cut();
        await queries.nowMs();
      }),
    );
    expect(reason).toBe('store_unavailable');
    const rows = await engine.read((queries) => queries.all(`SELECT name FROM meta WHERE name = 'half'`));
    expect(rows).toEqual([]);
    way.close();
  });

  it('a deadlock is run again until both transactions have happened', async () => {
    const engine = await open({ listen: false });
    await engine.write(async (queries) => {
      for (const name of ['a', 'b']) await queries.run(`INSERT INTO meta (name, value) VALUES (?, '')`, name);
    });
    let runs = 0;
    let bothHold = () => {};
    const meeting = new Promise<void>((met) => (bothHold = met));
    const cross = (first: string, second: string) =>
      engine.write(async (queries) => {
        runs += 1;
        await queries.run(`UPDATE meta SET value = value || 'x' WHERE name = ?`, first);
        // Each holds what the other wants before it goes on.
        if (runs === 2) bothHold();
        await meeting;
        await queries.run(`UPDATE meta SET value = value || 'x' WHERE name = ?`, second);
      });
    await Promise.all([cross('a', 'b'), cross('b', 'a')]);
    expect(runs).toBeGreaterThan(2);
    const rows = await engine.read((queries) =>
      queries.all(`SELECT value FROM meta WHERE name IN ('a', 'b') ORDER BY name`),
    );
    expect(rows).toEqual([{ value: 'xx' }, { value: 'xx' }]);
  });

  it('a lock that is held too long is refused as retryable', async () => {
    const schema = schemaName();
    const engine = await open({ schema, lockTimeoutMs: 100, listen: false });
    await admin.query(`BEGIN; LOCK TABLE ${schema}.tasks IN ACCESS EXCLUSIVE MODE`);
    expect(await reasonOf(created(openLedger(engine)))).toBe('store_unavailable');
    await admin.query('ROLLBACK');
    expect(await reasonOf(created(openLedger(engine)))).toBe('no refusal');
  });

  it('a statement that fails fails its transaction, even when its error is swallowed', async () => {
    const engine = await open({ listen: false });
    const swallowed = engine.write(async (queries) => {
      await queries.run(`INSERT INTO meta (name, value) VALUES ('half', '1')`);
      await queries.run(`INSERT INTO meta (name, value) VALUES ('half', '1')`).catch(() => 0);
    });
    await expect(swallowed).rejects.toThrow('nothing was committed');
  });

  it('a mistake in a statement stays a bug', async () => {
    const engine = await open({ listen: false });
    expect(
      await reasonOf(engine.read((queries) => queries.all(`SELECT nothing_like_it FROM tasks`))),
    ).toContain('nothing_like_it');
  });

  it('after closing everything is refused', async () => {
    const engine = await open();
    await engine.close();
    expect(await reasonOf(engine.write((queries) => queries.nowMs()))).toBe('store_unavailable');
    expect(await reasonOf(engine.read((queries) => queries.nowMs()))).toBe('store_unavailable');
  });

  it('without prepared statements everything works as well', async () => {
    const ledger = openLedger(await open({ prepare: false, listen: false }));
    const task = await created(ledger);
    expect((await ledger.readTask(task.id))?.task).toEqual(task);
  });
});

describe('hints', () => {
  it('reach the own node and every other one after the commit, and none comes from what was rolled back', async () => {
    const schema = schemaName();
    const [one, two] = [await open({ schema }), await open({ schema })];
    const heard: { one: Hint[]; two: Hint[] } = { one: [], two: [] };
    one.onHint((hint) => heard.one.push(hint));
    const stop = two.onHint((hint) => heard.two.push(hint));
    await reasonOf(
      one.write(async (queries) => {
        await queries.hint({ kind: 'due' });
        throw new Error('no');
      }),
    );
    await one.write((queries) => queries.hint({ kind: 'task', taskId: 't' }));
    await until(() => heard.two.length > 0);
    expect(heard).toEqual({ one: [{ kind: 'task', taskId: 't' }], two: [{ kind: 'task', taskId: 't' }] });
    stop();
    await one.write((queries) => queries.hint({ kind: 'due' }));
    await two.write((queries) => queries.hint({ kind: 'due' }));
    await until(() => heard.one.length === 3);
    expect(heard.two).toHaveLength(1);
  });

  it('come again after the listening connection was lost, and what was missed is made good by a resync', async () => {
    const schema = schemaName();
    const way = await cuttable();
    const near = await open({ schema });
    const far = await open({ schema, connectionString: way.to });
    const heard: Hint[] = [];
    far.onHint((hint) => heard.push(hint));
    way.refuse(true);
    way.cut();
    await near.write((queries) => queries.hint({ kind: 'task', taskId: 'missed' }));
    await sleep(800);
    expect(heard).toEqual([]);
    way.refuse(false);
    await until(() => heard.length > 0);
    await sleep(300);
    // One connection came back, however often it was tried.
    expect(heard).toEqual([{ kind: 'resync' }]);
    await near.write((queries) => queries.hint({ kind: 'task', taskId: 'heard' }));
    await until(() => heard.length > 1);
    expect(heard[1]).toEqual({ kind: 'task', taskId: 'heard' });
    await far.close();
    way.close();
  });

  it('of a large transaction travel in payloads below the limit of the server, each once', async () => {
    const hints: Hint[] = Array.from({ length: 2_000 }, (_, n) => ({
      kind: 'task',
      taskId: `task-${n % 1_500}`,
    }));
    const texts = payloads('node', [...hints, { kind: 'task', taskId: 'é'.repeat(9_000) }]);
    expect(Math.max(...texts.map((text) => Buffer.byteLength(text)))).toBeLessThan(8_000);
    const got = texts.flatMap((text) => received('other', text));
    expect(got).toHaveLength(1_501);
    expect(got.at(-1)).toEqual({ kind: 'resync' });
    expect(texts.flatMap((text) => received('node', text))).toEqual([]);
    expect(received('node', 'not json')).toEqual([{ kind: 'resync' }]);
    const engine = await open();
    await engine.write(async (queries) => {
      for (const hint of hints) await queries.hint(hint);
    });
  });
});
