/** What happens to a connection whose access token has ended, counted at the provider. */
import { afterEach, describe, expect, test } from 'vitest';
import { openRefreshRig, type RefreshRig, type RefreshRigOptions } from '../support/refresh-rig.ts';

let rig: RefreshRig;

async function open(options: RefreshRigOptions): Promise<void> {
  rig = await openRefreshRig(options);
}

afterEach(async () => {
  await rig.close();
});

describe('one expired rotating token', () => {
  test.each<['over' | 'unknown']>([['over'], ['unknown']])(
    'needed by 20 jobs at once costs one refresh, and all go on (known end: %s)',
    async (expiry) => {
      await open({ expiry, switches: { delayMs: 50 } });
      rig.fake.expireAccessTokens();
      const ids = await Promise.all(Array.from({ length: 20 }, () => rig.start()));
      const tasks = await Promise.all(ids.map((id) => rig.settled(id)));
      expect(tasks.map((task) => task.status)).toEqual(Array(20).fill('completed'));
      expect(rig.fake.count('refresh')).toBe(1);
      expect((await rig.connection()).generation).toBe(2);
    },
  );

  test('needed on two nodes at once costs one refresh', async () => {
    await open({ expiry: 'over', switches: { delayMs: 200 } });
    await rig.openNode();
    const ids = await Promise.all(Array.from({ length: 20 }, () => rig.start()));
    const tasks = await Promise.all(ids.map((id) => rig.settled(id)));
    expect(tasks.map((task) => task.status)).toEqual(Array(20).fill('completed'));
    expect(rig.fake.count('refresh')).toBe(1);
  });
});

describe('a token whose end nobody knows', () => {
  test('costs no refresh in 50 calls, then one refresh and one retry after a 401', async () => {
    await open({});
    expect((await rig.settled(await rig.start(50))).status).toBe('completed');
    expect(rig.fake.count('refresh')).toBe(0);
    expect(rig.fake.count('api')).toBe(50);
    rig.fake.expireAccessTokens();
    expect((await rig.settled(await rig.start(1))).status).toBe('completed');
    expect(rig.fake.count('refresh')).toBe(1);
    expect(rig.fake.count('api')).toBe(52);
  });

  test.each<[unknown]>([['missing'], [0], [null], [-1], ['abc'], [315_360_000]])(
    'because the refresh answered expires_in %j, is not refreshed again before a 401',
    async (expiresIn) => {
      await open({ expiry: 'over', switches: { expiresIn } });
      expect((await rig.settled(await rig.start(10))).status).toBe('completed');
      expect(rig.fake.count('refresh')).toBe(1);
      expect((await rig.connection()).record?.expiresAtMs).toBeNull();
    },
  );
});

test('a token that lives for less than the early margin is not refreshed before every call', async () => {
  await open({ expiry: 'over', switches: { expiresIn: 30 } });
  expect((await rig.settled(await rig.start(10))).status).toBe('completed');
  expect(rig.fake.count('refresh')).toBe(1);
});

test('a second 401 straight after a good refresh, while the provider knows the person, is the resource’s', async () => {
  await open({ switches: { api: { status: 401, body: { error: 'no' } } } });
  const task = await rig.settled(await rig.start());
  expect(task).toMatchObject({ status: 'failed', outcome: { reason: 'resource_refused', code: 4018 } });
  expect(rig.fake.count('refresh')).toBe(1);
  expect(rig.fake.count('api')).toBe(2);
  expect(rig.fake.count('userinfo')).toBe(1);
  expect((await rig.connection()).status).toBe('active');
});

test('a second 401 straight after a good refresh that the identity endpoint repeats asks the person', async () => {
  const refused = { status: 401, body: { error: 'no' } };
  await open({ switches: { api: refused, userinfo: refused } });
  const task = await rig.settled(await rig.start());
  expect(task.status).toBe('input_required');
  expect(task.inputs).toHaveLength(1);
  expect(rig.fake.count('refresh')).toBe(1);
  expect(rig.fake.count('userinfo')).toBe(1);
  expect((await rig.connection()).status).toBe('needs_sign_in');
});

test('a second 401 while the identity endpoint is down condemns nothing', async () => {
  await open({
    switches: {
      api: { status: 401, body: { error: 'no' }, times: 2 },
      userinfo: { status: 503, body: 'down', times: 1 },
    },
  });
  expect((await rig.settled(await rig.start())).status).toBe('completed');
  expect((await rig.connection()).status).toBe('active');
});

test('a 401 of a token that cannot be refreshed condemns nothing before the identity endpoint was asked', async () => {
  await open({
    switches: { omitRefreshToken: 'always', api: { status: 401, body: { error: 'no' } } },
  });
  const task = await rig.settled(await rig.start());
  expect(task).toMatchObject({ status: 'failed', outcome: { reason: 'resource_refused' } });
  expect(rig.fake.count('userinfo')).toBe(1);
  expect((await rig.connection()).status).toBe('active');
});

test('a dead token that cannot be refreshed asks the person', async () => {
  await open({ switches: { omitRefreshToken: 'always' } });
  rig.fake.expireAccessTokens();
  const task = await rig.settled(await rig.start());
  expect(task.status).toBe('input_required');
  expect(rig.fake.count('userinfo')).toBe(1);
  expect(rig.fake.count('refresh')).toBe(0);
});

test('403 insufficient_scope asks for the union of scopes, keeps the old grant, and goes on when it is given', async () => {
  const narrow = {
    status: 403,
    body: { error: 'insufficient_scope' },
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="shelf:write"' },
    times: 1,
  };
  await open({ scopes: ['shelf:read'], switches: { api: narrow } });
  const id = await rig.start(1, ['shelf:read']);
  const task = await rig.settled(id);
  expect(task.status).toBe('input_required');
  expect(task.inputs).toHaveLength(1);
  expect(await rig.connection()).toMatchObject({ status: 'active', generation: 1 });
  expect(rig.fake.count('refresh')).toBe(0);
  await rig.signIn(['shelf:read']);
  expect((await rig.settled(id, 1_500)).status).toBe('input_required');
  await rig.signIn(['shelf:write', 'shelf:read']);
  await expect.poll(async () => (await rig.read(id)).status, { timeout: 5_000 }).toBe('completed');
});

test('a refresh that is answered with fewer scopes stops the job that needs more before it reaches the API', async () => {
  await open({
    scopes: ['a', 'b'],
    expiry: 'over',
    switches: {
      refresh: {
        kind: 'instead',
        status: 200,
        body: { access_token: 'narrow-token', refresh_token: 'next', token_type: 'Bearer', scope: 'a' },
      },
    },
  });
  const task = await rig.settled(await rig.start(1, ['a', 'b']));
  expect(task.status).toBe('input_required');
  expect(task.inputs).toHaveLength(1);
  expect(rig.fake.count('api')).toBe(0);
  expect((await rig.connection()).record?.scopes).toEqual(['a']);
});

test('a refresh names no scopes, and those that were granted stay', async () => {
  await open({ scopes: ['a', 'b'], expiry: 'over' });
  expect((await rig.settled(await rig.start(1, ['a', 'b']))).status).toBe('completed');
  const refresh = rig.fake.calls.find((call) => call.kind === 'refresh');
  expect(refresh?.scope).toBeUndefined();
  expect((await rig.connection()).record?.scopes).toEqual(['a', 'b']);
});

test('what a refresh leaves out keeps its value: refresh token and scopes', async () => {
  await open({
    scopes: ['a', 'b'],
    expiry: 'over',
    switches: { rotate: false, omitRefreshToken: 'on-refresh', omitScope: true },
    profile: { refresh: { rotates: false } },
  });
  expect((await rig.settled(await rig.start(1, ['a', 'b']))).status).toBe('completed');
  expect((await rig.connection()).record).toMatchObject({ refreshable: true, scopes: ['a', 'b'] });
  rig.fake.expireAccessTokens();
  expect((await rig.settled(await rig.start(1, ['b', 'a']))).status).toBe('completed');
  expect(rig.fake.count('refresh')).toBe(2);
});

test.each<[string, RefreshRigOptions]>([
  ['a form', { switches: { refresh: { kind: 'tokens', as: 'form', status: 200 } } }],
  ['a byte order mark', { switches: { refresh: { kind: 'tokens', as: 'json-with-bom', status: 200 } } }],
  ['text/plain', { switches: { refresh: { kind: 'tokens', as: 'json-as-text', status: 200 } } }],
  ['status 201', { switches: { refresh: { kind: 'tokens', as: 'json', status: 201 } } }],
  ['expires_in as text', { switches: { expiresIn: '3600' } }],
  ['token_type bearer', { switches: { tokenType: 'bearer' } }],
  ['token_type BEARER', { switches: { tokenType: 'BEARER' } }],
  ['no token_type', { switches: { tokenType: 'missing' } }],
  ['scopes with commas', { switches: { scopeSeparator: ',' } }],
  [
    'the token of a person in a member',
    { switches: { nested: 'authed-user' }, profile: { answer: { within: 'authed_user' } } },
  ],
  [
    'a bot token beside it',
    { switches: { nested: 'authed-user-and-bot' }, profile: { answer: { within: 'authed_user' } } },
  ],
])('a refreshed token in an odd wrapper works, and is sent as Bearer: %s', async (_, options) => {
  await open({
    expiry: 'over',
    scopes: ['a', 'b'],
    ...options,
    switches: { ...options.switches, nested: 'no', exchange: { kind: 'tokens', as: 'json', status: 200 } },
  });
  rig.fake.set(options.switches ?? {});
  expect((await rig.settled(await rig.start(1, ['b']))).status).toBe('completed');
  expect(rig.fake.count('refresh')).toBe(1);
  expect((await rig.connection()).record?.scopes).toEqual(['a', 'b']);
});
