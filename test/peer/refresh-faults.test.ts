/** What a refresh that goes wrong costs: the provider's, the network's, our own store's faults. */
import { inspect } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import type { TokenReply } from '../support/fake-provider-switches.ts';
import { failingStore, failure } from '../support/failing-store.ts';
import { openRefreshRig, type RefreshRig, type RefreshRigOptions } from '../support/refresh-rig.ts';

let rig: RefreshRig;

async function open(options: RefreshRigOptions): Promise<void> {
  rig = await openRefreshRig({ expiry: 'over', ...options });
}

afterEach(async () => {
  // Whatever a test did: no token was ever logged.
  const logged = rig.lines.join('\n');
  for (const token of rig.fake.secrets) expect(logged).not.toContain(token);
  await rig.close();
});

/** How often each refresh token was presented. */
function uses(): number[] {
  const counts = new Map<number | undefined, number>();
  for (const { kind, refreshToken } of rig.fake.calls) {
    if (kind === 'refresh') counts.set(refreshToken, (counts.get(refreshToken) ?? 0) + 1);
  }
  return [...counts.values()];
}

describe('an answer lost after the rotation', () => {
  test('within the grace time of the provider costs one more use, and the task goes on', async () => {
    await open({ switches: { graceMs: 30_000 } });
    rig.fake.set({ dropReply: true });
    const id = await rig.start();
    await expect.poll(() => rig.fake.count('refresh'), { timeout: 5_000, interval: 5 }).toBe(1);
    rig.fake.set({ dropReply: false });
    expect((await rig.settled(id)).status).toBe('completed');
    expect(uses()).toEqual([2]);
  });

  test('without grace ends in one sign-in: the old token is used twice, then never again', async () => {
    await open({});
    rig.fake.set({ dropReply: true });
    const id = await rig.start();
    const task = await rig.settled(id);
    expect(task.status).toBe('input_required');
    expect(task.inputs).toHaveLength(1);
    const more = await rig.settled(await rig.start());
    expect(more.status).toBe('input_required');
    expect(uses()).toEqual([2]);
    expect(await rig.connection()).toMatchObject({ status: 'needs_sign_in', generation: 1 });
    rig.fake.set({ dropReply: false });
    await rig.signIn();
    await expect.poll(async () => (await rig.read(id)).status, { timeout: 5_000 }).toBe('completed');
  });

  test('every time, within grace, still uses the old token no more than twice', async () => {
    await open({ switches: { graceMs: 60_000 } });
    rig.fake.set({ dropReply: true });
    expect((await rig.settled(await rig.start())).status).toBe('input_required');
    expect(uses()).toEqual([2]);
  });
});

test('a network that fails for half a second costs no sign-in, although the token rotates', async () => {
  await open({ switches: { refresh: { kind: 'reset' } } });
  const id = await rig.start();
  await expect.poll(() => rig.fake.count('refresh'), { interval: 5 }).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  rig.fake.set({ refresh: { kind: 'tokens', as: 'json', status: 200 } });
  expect((await rig.settled(id)).status).toBe('completed');
  expect(uses()).toEqual([2]);
});

describe('our own store fails after the provider has answered', () => {
  // Sealing tries five times by itself.
  test.each<[string, RegExp, number]>([
    ['while the answer is sealed', /INSERT INTO vault_records/, 6],
    ['while the answer is committed', /generation = generation \+ 1/, 3],
  ])('%s: the answer is kept and used once the store is back', async (_, statement, failures) => {
    const failing = failure();
    await open({ wrapStore: (engine) => failingStore(engine, failing) });
    failing.statement = statement;
    const id = await rig.start();
    await expect.poll(() => failing.failed, { timeout: 15_000 }).toBeGreaterThanOrEqual(failures);
    // Nobody got the new token as if all were well.
    expect(rig.fake.count('api')).toBe(0);
    expect((await rig.connection()).generation).toBe(1);
    failing.statement = null;
    expect((await rig.settled(id)).status).toBe('completed');
    expect(rig.fake.count('refresh')).toBe(1);
    expect(await rig.connection()).toMatchObject({ status: 'active', generation: 2, intent: null });
  });

  test('before anything was redeemed: no use of the refresh token is in doubt', async () => {
    const failing = failure();
    await open({ wrapStore: (engine) => failingStore(engine, failing) });
    // A fresh process has not opened the record yet.
    failing.statement = /SELECT sealed FROM vault_records/;
    failing.times = 1;
    const id = await rig.start();
    expect((await rig.settled(id)).status).toBe('completed');
    expect(failing.failed).toBe(1);
    expect(rig.fake.count('refresh')).toBe(1);
  });
});

describe('an outage of the token endpoint', () => {
  test.each<[string, TokenReply]>([
    ['500', { kind: 'instead', status: 500, body: 'down', times: 3 }],
    [
      '500 that speaks of a dead grant',
      { kind: 'instead', status: 500, body: { error: 'invalid_grant' }, times: 1 },
    ],
    [
      '502 with a page called JSON',
      {
        kind: 'instead',
        status: 502,
        body: '<html>',
        headers: { 'content-type': 'application/json' },
        times: 1,
      },
    ],
    ['503', { kind: 'instead', status: 503, body: '', times: 1 }],
    [
      '429 with Retry-After',
      { kind: 'instead', status: 429, body: '', headers: { 'retry-after': '1' }, times: 1 },
    ],
    [
      '400 temporarily_unavailable',
      { kind: 'instead', status: 400, body: { error: 'temporarily_unavailable' }, times: 1 },
    ],
    ['a reset connection', { kind: 'reset', times: 1 }],
  ])('%s asks nobody to sign in, and the work goes on by itself', async (_, refresh) => {
    await open({ switches: { refresh } });
    const task = await rig.settled(await rig.start());
    expect(task.status).toBe('completed');
    expect(task.inputs).toEqual([]);
    expect(await rig.connection()).toMatchObject({ status: 'active', generation: 2, failures: 0 });
  });

  test('with a long Retry-After parks every task, asks once, and links nobody', async () => {
    await open({
      switches: { refresh: { kind: 'instead', status: 503, body: '', headers: { 'retry-after': '30' } } },
    });
    const ids = await Promise.all(Array.from({ length: 8 }, () => rig.start()));
    for (const id of ids) {
      await expect
        .poll(async () => (await rig.read(id)).statusMessage, { timeout: 5_000 })
        .toContain('goes on by itself');
      expect(await rig.read(id)).toMatchObject({ status: 'working', inputs: [] });
    }
    await expect.poll(() => rig.keyturn.engine.running(), { timeout: 5_000 }).toBe(0);
    expect(rig.fake.count('refresh')).toBe(1);
    expect(await rig.connection()).toMatchObject({ status: 'active', generation: 1 });
  });

  test('with a long Retry-After is not asked again because the API answers 401', async () => {
    await open({
      expiry: 'unknown',
      switches: { refresh: { kind: 'instead', status: 503, body: '', headers: { 'retry-after': '30' } } },
    });
    rig.fake.expireAccessTokens();
    for (let one = 0; one < 4; one += 1) {
      const id = await rig.start();
      await expect
        .poll(async () => (await rig.read(id)).statusMessage, { timeout: 5_000 })
        .toContain('by itself');
    }
    expect(rig.fake.count('refresh')).toBe(1);
  });

  test('while the access token still lives is not felt by anybody', async () => {
    await open({ expiry: 3_000, timing: { earlyMs: 60_000 } });
    rig.fake.set({ refresh: { kind: 'instead', status: 503, body: '' } });
    await new Promise((resolve) => setTimeout(resolve, 2_400));
    expect((await rig.settled(await rig.start())).status).toBe('completed');
    expect(rig.fake.count('refresh')).toBe(1);
  });
});

describe('a dead grant', () => {
  test.each<[string, TokenReply]>([
    ['400 invalid_grant', { kind: 'instead', status: 400, body: { error: 'invalid_grant' } }],
    ['401 invalid_grant', { kind: 'instead', status: 401, body: { error: 'invalid_grant' } }],
    ['403 invalid_grant', { kind: 'instead', status: 403, body: { error: 'invalid_grant' } }],
    ['200 bad_refresh_token', { kind: 'instead', status: 200, body: { error: 'bad_refresh_token' } }],
  ])('told by %s is tried once, then never again, and gives one link a task', async (_, refresh) => {
    await open({ switches: { refresh } });
    const first = await rig.settled(await rig.start());
    expect(first.status).toBe('input_required');
    expect(first.inputs).toHaveLength(1);
    expect((await rig.settled(await rig.start())).status).toBe('input_required');
    expect(rig.fake.count('refresh')).toBe(1);
    expect(JSON.stringify(first)).not.toContain('fake:');
  });

  test('told by invalid_request counts as one where the profile says so', async () => {
    await open({
      switches: { refresh: { kind: 'instead', status: 400, body: { error: 'invalid_request' } } },
      profile: { errors: { dead: ['invalid_request'] } },
    });
    expect((await rig.settled(await rig.start())).status).toBe('input_required');
    expect(rig.fake.count('refresh')).toBe(1);
  });

  test('met by 20 jobs at once is tried once', async () => {
    await open({ switches: { refresh: { kind: 'instead', status: 400, body: { error: 'invalid_grant' } } } });
    const ids = await Promise.all(Array.from({ length: 20 }, () => rig.start()));
    const tasks = await Promise.all(ids.map((id) => rig.settled(id)));
    expect(tasks.map((task) => task.status)).toEqual(Array(20).fill('input_required'));
    expect(rig.fake.count('refresh')).toBe(1);
  });
});

test.each(['invalid_client', 'unauthorized_client', 'invalid_scope'])(
  '%s is the operator’s: the task fails with provider_misconfigured and nobody gets a link',
  async (error) => {
    await open({
      switches: {
        refresh: { kind: 'instead', status: 401, body: { error, error_description: 'PROVIDER-WORDS' } },
      },
    });
    const task = await rig.settled(await rig.start());
    expect(task).toMatchObject({
      status: 'failed',
      inputs: [],
      outcome: { kind: 'error', reason: 'provider_misconfigured', code: 4015 },
    });
    expect(inspect(task, { depth: Infinity })).not.toContain('PROVIDER-WORDS');
    expect(rig.lines.join('')).not.toContain('PROVIDER-WORDS');
    expect(await rig.connection()).toMatchObject({ status: 'active', generation: 1 });
  },
);

describe('a refresh belongs to the connection', () => {
  test('a cancelled task leaves at once, and the answer to its refresh is kept', async () => {
    await open({});
    const gate = rig.fake.gate('refresh');
    const id = await rig.start();
    await gate.reached;
    await rig.cancel(id);
    expect((await rig.read(id)).status).toBe('cancelled');
    await expect.poll(() => rig.keyturn.engine.running(), { timeout: 2_000 }).toBe(0);
    gate.open();
    await expect.poll(async () => (await rig.connection()).generation, { timeout: 5_000 }).toBe(2);
    expect((await rig.settled(await rig.start())).status).toBe('completed');
    expect(rig.fake.count('refresh')).toBe(1);
  });

  test('a shutdown waits for its answer', async () => {
    await open({ timing: { graceMs: 50 } });
    const gate = rig.fake.gate('refresh');
    const id = await rig.start();
    await gate.reached;
    const stopped = rig.keyturn.engine.stop();
    setTimeout(() => gate.open(), 300);
    await stopped;
    expect((await rig.connection()).generation).toBe(2);
    await rig.openNode();
    await expect.poll(async () => (await rig.read(id)).status, { timeout: 10_000 }).toBe('completed');
    expect(rig.fake.count('refresh')).toBe(1);
  });

  test('an answer that outlives the lease of its holder commits all the same', async () => {
    await open({ timing: { exchangeLeaseMs: 300 }, switches: { graceMs: 60_000 } });
    await rig.openNode();
    const gate = rig.fake.gate('refresh');
    const ids = await Promise.all(Array.from({ length: 20 }, () => rig.start()));
    await gate.reached;
    await new Promise((resolve) => setTimeout(resolve, 800));
    gate.open();
    const tasks = await Promise.all(ids.map((id) => rig.settled(id)));
    expect(tasks.map((task) => task.status)).toEqual(Array(20).fill('completed'));
    expect(Math.max(...uses())).toBeLessThanOrEqual(2);
    expect((await rig.connection()).status).toBe('active');
  });

  test('while a provider hangs, the ledger answers and holds no transaction', async () => {
    await open({});
    const gate = rig.fake.gate('refresh');
    await rig.start();
    await gate.reached;
    // The gate is shut until the write is there: it can have waited for nothing of the provider's.
    await rig.keyturn.ledger.writeMeta('still', 'writes');
    expect(await rig.keyturn.ledger.readMeta('still')).toBe('writes');
    gate.open();
  });
});
