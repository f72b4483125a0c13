import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { openHost, type Host, type HostTask } from '../../src/sandbox/mcp-client.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { recordIds } from '../../src/sandbox/records.ts';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts';
import { brokenLink, type AuditRow } from '../../src/store/audit.ts';
import { MOST_STRIKES } from '../../src/store/sweep.ts';
import { generateKey } from '../../src/vault/keyring.ts';
import { freePort, worldConfig } from '../../src/world.ts';
import type { CrashChildOrder } from '../support/crash-child.ts';
import { CRASH_POINTS, type CrashPoint } from '../support/crash-points.ts';

const long = process.env['KEYTURN_LONG'] === '1';
const CHILD = new URL('../support/crash-child.ts', import.meta.url);

let ending: (() => Promise<void>)[] = [];

async function endAll(): Promise<void> {
  for (const end of ending.toReversed()) await end();
  ending = [];
}

afterEach(endAll);

/** A server that is started again whenever it has died. */
interface Mortal {
  readonly sandbox: Sandbox;
  readonly file: string;
  readonly mcpUrl: string;
  /** How often it has died. */
  deaths(): number;
  /** Resolves when it answers; starts it without a crash point if it has died. */
  alive(): Promise<void>;
  kill(): void;
  /** Freezes the process at once; resolves when it is frozen between two writes: a frozen write locks an SQLite file. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Another process on the same ledger, with a port of its own. */
  another(): Promise<void>;
}

function isWritable(file: string): boolean {
  const db = new DatabaseSync(file, { timeout: 50 });
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch {
    return false;
  } finally {
    db.close();
  }
}

async function openMortal(point: CrashPoint | null): Promise<Mortal> {
  const port = await freePort();
  const publicUrl = `http://localhost:${port}`;
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-crash-'));
  const sandbox = await openSandbox({ mcpResource: `${publicUrl}/mcp`, keyturnPublicUrl: publicUrl });
  const made = worldConfig({
    sandbox,
    publicUrl,
    port,
    folder,
    vaultKeys: generateKey().entry.reveal(),
  });
  const { tools: _tools, ...config } = made.config;
  const quick = {
    ...config,
    log: { level: 'silent' as const },
    timing: { leaseMs: 1_000, exchangeLeaseMs: 1_000, sweepEveryMs: 100 },
  };
  let child: ChildProcess | undefined;
  let deaths = 0;
  let up: Promise<void> | undefined;

  function start(at: CrashPoint | null): Promise<void> {
    const mine = fork(CHILD, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    child = mine;
    const order: CrashChildOrder = {
      config: quick,
      env: made.env,
      recordsUrl: sandbox.providerSettings.recordsUrl,
      point: at,
    };
    mine.send(order);
    return new Promise((resolve) => {
      mine.once('message', () => resolve());
      mine.once('exit', () => {
        if (child !== mine) return;
        deaths += 1;
        child = undefined;
        up = undefined;
        resolve();
      });
    });
  }

  up = start(point);
  ending.push(async () => {
    const last = child;
    child = undefined;
    last?.kill('SIGKILL');
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    sandbox,
    file: join(folder, 'keyturn.sqlite'),
    mcpUrl: `${publicUrl}/mcp`,
    deaths: () => deaths,
    async alive() {
      for (let tries = 0; tries < 20; tries += 1) {
        up ??= start(null);
        await up;
        if (child !== undefined) return;
      }
      throw new Error('the server does not come up');
    },
    kill: () => child?.kill('SIGKILL'),
    async freeze() {
      for (let tries = 0; tries < 200; tries += 1) {
        child?.kill('SIGSTOP');
        await pause(20);
        if (isWritable(join(folder, 'keyturn.sqlite'))) return;
        child?.kill('SIGCONT');
        await pause(1);
      }
      throw new Error('it is never between two writes');
    },
    thaw: () => child?.kill('SIGCONT'),
    async another() {
      const second = fork(CHILD, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
      ending.push(() => {
        second.kill('SIGKILL');
        return Promise.resolve();
      });
      second.send({
        config: { ...quick, listen: { host: '127.0.0.1', port: await freePort() } },
        env: made.env,
        recordsUrl: sandbox.providerSettings.recordsUrl,
        point: null,
      } satisfies CrashChildOrder);
      await new Promise((resolve) => {
        second.once('message', resolve);
      });
    },
  };
}

/** Does something that a dying server may interrupt, until it is done. */
async function insist<T>(mortal: Mortal, what: string, act: () => Promise<T>): Promise<T> {
  let last: unknown;
  for (let tries = 0; tries < 40; tries += 1) {
    await mortal.alive();
    try {
      return await act();
    } catch (error) {
      last = error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error(`${what} never succeeded`, { cause: last });
}

async function connect(mortal: Mortal): Promise<Host> {
  return insist(mortal, 'connecting', () =>
    openHost({
      mcpUrl: mortal.mcpUrl,
      accessToken: () =>
        mortal.sandbox.issuer.issueAccessToken({
          sub: 'alice',
          clientId: 'crash-host',
          scope: 'mcp:tools',
          resource: mortal.mcpUrl,
          expiresInSeconds: 300,
        }),
    }),
  );
}

/** Signs in whenever the task asks, until it has ended. */
async function finish(mortal: Mortal, host: Host, taskId: string): Promise<HostTask> {
  const giveUpAt = Date.now() + 60_000;
  let link: string | undefined;
  for (;;) {
    const task = await insist(mortal, 'polling', () => host.get(taskId));
    if (!['working', 'input_required'].includes(task.status)) return task;
    if (Date.now() > giveUpAt) throw new Error(`the task stayed ${task.status}: ${task.statusMessage ?? ''}`);
    const [asked] = Object.entries(task.inputRequests ?? {});
    const url = asked?.[1].params['url'];
    if (asked !== undefined && typeof url === 'string') {
      link = url;
      // From here on the question is listed no more; the link stays good.
      await insist(mortal, 'answering', () => host.update(taskId, { [asked[0]]: { action: 'accept' } }));
    }
    if (task.status === 'input_required' && link !== undefined) {
      // A person who meets a dead server opens the link again.
      await openPerson()
        .signInEverywhere(link, { as: 'alice' })
        .catch(() => undefined);
    }
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}

function rows<Row>(file: string, sql: string): Row[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}

/** The story: two sign-ins, a refresh in between, every record once. @returns how often the server died. */
async function tell(mortal: Mortal): Promise<number> {
  const { saas } = mortal.sandbox;
  // Page 3: the access token is over and gets renewed. Page 6: the grant is gone and Alice has to sign in again.
  saas.afterPages(3, () => void saas.expireAccessTokens());
  saas.afterPages(6, () => {
    saas.expireAccessTokens();
    saas.revokeGrants('alice@paperboat');
  });
  const host = await connect(mortal);
  ending.push(() => host.close().catch(() => undefined));
  const task = await insist(mortal, 'starting', () => host.start('import_records', {}, 'the-one'));
  const done = await finish(mortal, host, task.taskId);
  expect(done.status, done.statusMessage).toBe('completed');
  const cancelled = await insist(mortal, 'starting', () => host.start('import_records', {}, 'the-other'));
  await insist(mortal, 'cancelling', () => host.cancel(cancelled.taskId));
  await mortal.alive();

  expect(
    rows<{ id: string }>(mortal.file, 'SELECT id FROM records')
      .map((row) => row.id)
      .toSorted(),
  ).toEqual([...recordIds()].toSorted());
  // One task for the call that may have been sent twice.
  expect(rows(mortal.file, `SELECT id FROM tasks`)).toHaveLength(2);
  const [connection] = rows<{ record: string }>(mortal.file, 'SELECT record FROM connections');
  const { recordKey } = JSON.parse(connection?.record ?? '{}') as { recordKey: string };
  expect(rows(mortal.file, `SELECT 1 FROM vault_records WHERE record_key = '${recordKey}'`)).toHaveLength(1);
  expect(rows(mortal.file, `SELECT 1 FROM vault_orphans WHERE record_key = '${recordKey}'`)).toHaveLength(0);
  // Everything in the vault is pointed at or on its way out; nothing of an attempt is left over.
  await insist(mortal, 'settling', () => {
    const reserved = rows(
      mortal.file,
      `SELECT record_key FROM vault_records WHERE record_key NOT LIKE '%.%'
         AND record_key <> '${recordKey}' AND record_key NOT IN (SELECT record_key FROM vault_orphans)`,
    );
    if (reserved.length > 0) throw new Error('the vault holds what nobody knows', { cause: reserved });
    return Promise.resolve();
  });
  expect(saas.tokenCalls.filter((call) => call.outcome === 'ok').length).toBeGreaterThan(2);
  // A code is sent once, whatever dies; a refresh token twice at most: once more after an answer that nobody kept.
  const spent = Map.groupBy(saas.tokenCalls, (call) => `${call.grantType} ${call.spent}`);
  for (const [what, calls] of spent) {
    expect(calls.length, what).toBeLessThanOrEqual(what.startsWith('refresh_token') ? 2 : 1);
  }
  return mortal.deaths();
}

/** The chain of the audit log holds over every death. */
function chainBreaks(file: string): number | undefined {
  const chained = rows<Record<string, string | number | null>>(
    file,
    'SELECT * FROM audit WHERE link IS NOT NULL ORDER BY link',
  ).map(
    ({ client_id: clientId, task_id: taskId, connection_id: connectionId, facts, ...rest }) =>
      ({ ...rest, clientId, taskId, connectionId, facts: JSON.parse(String(facts)) }) as unknown as AuditRow,
  );
  expect(chained.length).toBeGreaterThan(0);
  return brokenLink(chained);
}

// A spread in the quick suite; every point in the long one.
const quickly = CRASH_POINTS.filter((_, index) => index % 7 === 1);

describe('a server whose power is cut', () => {
  test.each(long ? CRASH_POINTS : quickly)(
    '$side the commit of "$write" number $turn comes back and finishes, each record once, nothing lost',
    async (point) => {
      const mortal = await openMortal(point);
      const deaths = await tell(mortal);
      expect(deaths, 'the point was reached').toBe(1);
      expect(chainBreaks(mortal.file)).toBeUndefined();
    },
    90_000,
  );

  test(
    'at random instants comes back and finishes, each record once, nothing lost',
    async () => {
      const wanted = long ? 300 : 3;
      let deaths = 0;
      for (let round = 0; deaths < wanted && round < wanted; round += 1) {
        const mortal = await openMortal(null);
        let left = 4;
        const killer = setInterval(
          () => {
            if (left > 0) mortal.kill();
            left -= 1;
          },
          150 + Math.random() * 600,
        );
        try {
          deaths += await tell(mortal);
          expect(chainBreaks(mortal.file)).toBeUndefined();
        } finally {
          clearInterval(killer);
          // Each round's servers end with it.
          await endAll();
        }
      }
      expect(deaths).toBeGreaterThanOrEqual(wanted);
    },
    long ? 3_600_000 : 90_000,
  );
});

test('a job that kills its server each time is given up, and the server lives on', async () => {
  const mortal = await openMortal(null);
  const host = await connect(mortal);
  ending.push(() => host.close().catch(() => undefined));
  const task = await insist(mortal, 'starting', () => host.start('deadly', {}, 'the-deadly'));
  const done = await finish(mortal, host, task.taskId);
  expect(done).toMatchObject({
    status: 'failed',
    statusMessage: expect.stringContaining('too often') as string,
  });
  expect(mortal.deaths()).toBe(MOST_STRIKES);
  const good = await host.start('import_records');
  expect((await finish(mortal, host, good.taskId)).status).toBe('completed');
  expect(mortal.deaths()).toBe(MOST_STRIKES);
}, 60_000);

test('a server that freezes past its lease and thaws touches nothing: another has taken over', async () => {
  const mortal = await openMortal(null);
  const { saas } = mortal.sandbox;
  const host = await connect(mortal);
  ending.push(() => host.close().catch(() => undefined));
  const frozen = new Promise<void>((resolve) => {
    saas.afterPages(3, () => resolve(mortal.freeze()));
  });
  const task = await host.start('import_records');
  const waiting = await host.until(task.taskId, ['input_required']);
  const link = Object.values(waiting.inputRequests ?? {})[0]?.params['url'];
  // The page that ends the sign-in may be what freezes: nobody waits for it.
  void openPerson()
    .signInEverywhere(String(link), { as: 'alice' })
    .catch(() => undefined);
  await frozen;
  await mortal.another();
  const state = () =>
    rows(
      mortal.file,
      `SELECT status, term, rev, checkpoint, outcome, updated_at FROM tasks WHERE id = '${task.taskId}'`,
    );
  const ended = () => (state()[0] as { status: string }).status === 'completed';
  for (let tries = 0; tries < 200 && !ended(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(ended()).toBe(true);
  const before = { task: state(), records: rows(mortal.file, 'SELECT * FROM records ORDER BY id') };
  mortal.thaw();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect({ task: state(), records: rows(mortal.file, 'SELECT * FROM records ORDER BY id') }).toEqual(before);
  expect(before.records).toHaveLength(1_000);
}, 60_000);
