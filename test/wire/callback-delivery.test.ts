/** Delivery of the authorization response: once, twice, at once, late, after a cancel, after a restart. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FAULTLESS } from '../support/fake-provider-switches.ts';
import { openCallbackWorld, SOON_MS, type CallbackWorld, type Visitor } from '../support/callback-world.ts';

let scene: CallbackWorld;

beforeAll(async () => {
  scene = await openCallbackWorld();
});

afterAll(async () => {
  await scene.close();
});

beforeEach(async () => {
  scene.fake.set(FAULTLESS);
  await scene.disconnect('alice');
  await scene.disconnect('bob');
});

const exchanges = (): number => scene.fake.count('exchange');

test('a sign-in redeems its code once, and the task goes on to its end', async () => {
  const before = exchanges();
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const back = await alice.get(callback, { fromElsewhere: true });
  expect(back.status).toBe(303);
  expect(back.location).toMatch(/^\/outcome\/[\w-]+$/);
  const done = await alice.get(back.location ?? '');
  expect(done.status).toBe(200);
  expect(done.page.title).toContain('Done');
  expect((await scene.until('alice', taskId, 'completed')).outcome).toMatchObject({ kind: 'result' });
  expect(exchanges() - before).toBe(1);
});

test('a response that is delivered again shows the recorded outcome, without a second token call', async () => {
  const before = exchanges();
  const { link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const first = await alice.get(callback, { fromElsewhere: true });
  const second = await alice.get(callback, { fromElsewhere: true });
  expect(second.status).toBe(303);
  expect(second.location).toBe(first.location);
  expect(exchanges() - before).toBe(1);
});

test('a response that is delivered again after its page was seen shows the outcome to its person', async () => {
  const before = exchanges();
  const { link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const first = await alice.get(callback, { fromElsewhere: true });
  await alice.get(first.location ?? '');
  const again = await alice.get(callback, { fromElsewhere: true });
  expect(again.location).toBe(first.location);
  const page = await alice.get(again.location ?? '');
  expect(page.page.title).toContain('Done');
  // Somebody else with the same address learns nothing.
  const stranger = await scene.visitor().get(callback, { fromElsewhere: true });
  expect(stranger.status).toBe(403);
  expect(exchanges() - before).toBe(1);
});

test('eight deliveries at once lead to one token call and one outcome', async () => {
  const before = exchanges();
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => alice.get(callback, { fromElsewhere: true })),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([303]));
  expect(new Set(answers.map(({ location }) => location)).size).toBe(1);
  expect(exchanges() - before).toBe(1);
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
});

test('a response after the deadline is refused, and its code is never sent anywhere', async () => {
  const { taskId, link } = await scene.stopped('alice', { job: 'fetch_items_soon' });
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const before = exchanges();
  await pause(SOON_MS + 50);
  const back = await alice.get(callback, { fromElsewhere: true });
  // The binding ends with the attempt, at the deadline.
  const page = back.location === undefined ? back : await alice.get(back.location);
  expect(page.status).toBe(410);
  expect(exchanges() - before).toBe(0);
  const task = await scene.until('alice', taskId, 'failed');
  expect(task.outcome).toMatchObject({ kind: 'error', reason: 'deadline_passed' });
});

test('an exchange that crosses the deadline keeps the grant, and the task stays ended', async () => {
  const { taskId, link } = await scene.stopped('alice', { job: 'fetch_items_soon' });
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  scene.fake.set({ delayMs: SOON_MS + 100 });
  const back = await alice.get(callback, { fromElsewhere: true });
  const page = await alice.get(back.location ?? '');
  expect(page.page.title).toContain('too late');
  expect((await scene.read('alice', taskId)).outcome).toMatchObject({ reason: 'deadline_passed' });
  const found = await scene.world.keyturn.ledger.listConnections(scene.caller('alice').owner);
  expect(found.map(({ connection }) => connection.status)).toEqual(['active']);
});

test('a response after a cancel is refused before the exchange, and the page says so', async () => {
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const before = exchanges();
  await scene.world.keyturn.engine.tasks.cancel(scene.caller('alice'), taskId);
  const back = await alice.get(callback, { fromElsewhere: true });
  const page = await alice.get(back.location ?? '');
  expect(page.status).toBe(410);
  expect(page.page.title).toContain('cancelled');
  expect(exchanges() - before).toBe(0);
  expect((await scene.read('alice', taskId)).status).toBe('cancelled');
});

test('a response after a cancel says so even where the connection has come alive meanwhile', async () => {
  const first = await scene.stopped('alice');
  const second = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(first.link, 'alice');
  const mine = await scene.approve(await alice.depart(first.link));
  const others = await scene.approve(await alice.depart(second.link));
  await scene.world.keyturn.engine.tasks.cancel(scene.caller('alice'), first.taskId);
  await alice.get(others, { fromElsewhere: true });
  await scene.until('alice', second.taskId, 'completed');
  const back = await alice.get(mine, { fromElsewhere: true });
  const page = await alice.get(back.location ?? '');
  expect(page.status).toBe(410);
  expect(page.page.title).toContain('cancelled');
});

test('a cancel during the exchange keeps the grant, and the task stays cancelled', async () => {
  const { taskId, link } = await scene.stopped('bob');
  const bob = scene.visitor();
  await bob.signIn(link, 'bob');
  const callback = await scene.approve(await bob.depart(link));
  scene.fake.set({ delayMs: 400 });
  const coming = bob.get(callback, { fromElsewhere: true });
  await pause(150);
  await scene.world.keyturn.engine.tasks.cancel(scene.caller('bob'), taskId);
  const back = await coming;
  const page = await bob.get(back.location ?? '');
  expect(page.page.title).toContain('too late');
  expect((await scene.read('bob', taskId)).status).toBe('cancelled');
  const found = await scene.world.keyturn.ledger.listConnections(scene.caller('bob').owner);
  expect(found.map(({ connection }) => connection.status)).toEqual(['active']);
});

test('two sign-ins at the same time for one connection make one token call', async () => {
  const before = exchanges();
  const one = await scene.stopped('alice');
  const two = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(one.link, 'alice');
  const callbacks = [
    await scene.approve(await alice.depart(one.link)),
    await scene.approve(await alice.depart(two.link)),
  ];
  scene.fake.set({ delayMs: 300 });
  const back = await Promise.all(callbacks.map((url) => alice.get(url, { fromElsewhere: true })));
  for (const { location } of back) {
    expect((await alice.get(location ?? '')).page.title).toContain('Done');
  }
  for (const { taskId } of [one, two]) {
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  }
  expect(exchanges() - before).toBe(1);
});

test('a denial in an old tab ends nothing once another tab has signed in', async () => {
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  scene.fake.set({ authorizeError: { error: 'access_denied' } });
  const denied = await scene.approve(await alice.depart(link));
  scene.fake.set({ authorizeError: null, delayMs: 300 });
  const good = await scene.approve(await alice.depart(link));
  const coming = alice.get(good, { fromElsewhere: true });
  await pause(100);
  const back = await alice.get(denied, { fromElsewhere: true });
  await coming;
  expect((await alice.get(back.location ?? '')).page.title).toContain('Done');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
});

test('a response that reaches two nodes at once leads to one token call, on either', async () => {
  const before = exchanges();
  const node = await scene.world.openNode();
  try {
    const { taskId, link } = await scene.stopped('alice');
    const alice = scene.visitor();
    await alice.signIn(link, 'alice');
    const callback = await scene.approve(await alice.depart(link));
    const cookie = alice.person.cookies.headerFor({
      url: new URL(callback),
      isSameSite: false,
      isSafeNavigation: true,
    });
    const there = () =>
      node.app.inject({
        url: callback.slice(scene.world.publicUrl.length),
        headers: { cookie: cookie ?? '', 'sec-fetch-site': 'cross-site' },
      });
    const [one, two, here] = await Promise.all([
      there(),
      there(),
      alice.get(callback, { fromElsewhere: true }),
    ]);
    expect([one.statusCode, two.statusCode, here.status]).toEqual([303, 303, 303]);
    expect(one.headers.location).toBe(here.location);
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
    expect(exchanges() - before).toBe(1);
  } finally {
    await node.stop();
  }
});

test('a browser that goes away during the exchange does not interrupt it', async () => {
  const before = exchanges();
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const cookie = alice.person.cookies.headerFor({
    url: new URL(callback),
    isSameSite: false,
    isSafeNavigation: true,
  });
  scene.fake.set({ delayMs: 400 });
  const gone = fetch(callback, {
    redirect: 'manual',
    headers: { cookie: cookie ?? '' },
    signal: AbortSignal.timeout(150),
  });
  await expect(gone).rejects.toThrow();
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  expect(exchanges() - before).toBe(1);
});

test('a shutdown during the exchange waits for it, and nothing is lost', async () => {
  const before = exchanges();
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  scene.fake.set({ delayMs: 500 });
  const coming = alice.get(callback, { fromElsewhere: true }).catch(() => undefined);
  await pause(150);
  await scene.world.restart();
  await coming;
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  expect(exchanges() - before).toBe(1);
});

describe('a sign-in whose account cannot be checked at the moment', () => {
  async function undecided(job: string): Promise<{ taskId: string; outcome: string; alice: Visitor }> {
    const first = await scene.stopped('alice');
    const alice = scene.visitor();
    await alice.signIn(first.link, 'alice');
    await alice.get(await scene.approve(await alice.depart(first.link)), { fromElsewhere: true });
    await scene.until('alice', first.taskId, 'completed');
    scene.fake.endGrants();
    const { taskId, link } = await scene.stopped('alice', { job });
    scene.fake.set({ userinfo: { status: 503, body: {} } });
    const callback = await scene.approve(await alice.depart(link));
    const back = await alice.get(callback, { fromElsewhere: true });
    expect((await alice.get(back.location ?? '')).status).toBe(502);
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    return { taskId, outcome: back.location ?? '', alice };
  }

  test('is finished by whoever runs later, without a second token call', async () => {
    const { taskId, outcome, alice } = await undecided('fetch_items');
    const before = exchanges();
    await scene.world.restart();
    scene.fake.set({ userinfo: null });
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
    expect((await alice.get(outcome)).page.title).toContain('Done');
    expect(exchanges() - before).toBe(0);
  });

  test('is given up after the deadline', async () => {
    const { taskId, outcome, alice } = await undecided('fetch_items_soon');
    expect((await scene.until('alice', taskId, 'failed')).outcome).toMatchObject({
      reason: 'deadline_passed',
    });
    let page = await alice.get(outcome);
    for (let tries = 0; tries < 40 && page.status === 502; tries += 1) {
      await pause(250);
      page = await alice.get(outcome);
    }
    expect(page.status).toBe(409);
    expect(page.page.title).toContain('sign in once more');
  });
});

test('a restart between Continue and the response loses nothing', async () => {
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  await scene.world.restart();
  const back = await alice.get(callback, { fromElsewhere: true });
  expect((await alice.get(back.location ?? '')).page.title).toContain('Done');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
});

test('ten tasks of one person need one sign-in and one token call', async () => {
  const before = exchanges();
  const tasks = await Promise.all(Array.from({ length: 10 }, () => scene.stopped('alice')));
  const [abandoned, chosen] = tasks;
  const alice = scene.visitor();
  await alice.signIn(abandoned?.link ?? '', 'alice');
  await alice.depart(abandoned?.link ?? '');
  const callback = await scene.approve(await alice.depart(chosen?.link ?? ''));
  const back = await alice.get(callback, { fromElsewhere: true });
  const page = await alice.get(back.location ?? '');
  expect(page.html).toContain('9 more tasks');
  for (const { taskId } of tasks) {
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  }
  expect(exchanges() - before).toBe(1);
});

test('of two sign-ins for one connection the second is done without redeeming its code', async () => {
  const before = exchanges();
  const { link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const one = await scene.approve(await alice.depart(link));
  const two = await scene.approve(await alice.depart(link));
  await alice.get(two, { fromElsewhere: true });
  const back = await alice.get(one, { fromElsewhere: true });
  expect((await alice.get(back.location ?? '')).page.title).toContain('Done');
  expect(exchanges() - before).toBe(1);
});

test('a token answer that is lost is not asked for again, and a new sign-in works', async () => {
  const before = exchanges();
  const { taskId, link } = await scene.stopped('alice');
  const alice = scene.visitor();
  await alice.signIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  scene.fake.set({ dropReply: true });
  const back = await alice.get(callback, { fromElsewhere: true });
  expect(back.status).toBe(303);
  const page = await alice.get(back.location ?? '');
  expect(page.status).toBeGreaterThanOrEqual(400);
  await alice.get(callback, { fromElsewhere: true });
  expect(exchanges() - before).toBe(1);
  scene.fake.set({ dropReply: false });
  const again = await alice.get(await scene.approve(await alice.depart(link)), { fromElsewhere: true });
  expect((await alice.get(again.location ?? '')).page.title).toContain('Done');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
});
