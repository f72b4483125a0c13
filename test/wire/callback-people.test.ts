/** Who may finish a sign-in: the person it was made for, in the browser that started it, with the right account. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FAULTLESS } from '../support/fake-provider-switches.ts';
import {
  openCallbackWorld,
  SCOPES,
  type CallbackWorld,
  type Step,
  type Visitor,
} from '../support/callback-world.ts';

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

async function signedIn(link: string, as: string): Promise<Visitor> {
  const visitor = scene.visitor();
  await visitor.signIn(link, as);
  return visitor;
}

async function arrive(visitor: Visitor, url: string): Promise<Step> {
  const back = await visitor.get(url, { fromElsewhere: true });
  return back.location === undefined ? back : visitor.get(back.location);
}

async function finish(visitor: Visitor, link: string, fields = {}): Promise<Step> {
  return arrive(visitor, await scene.approve(await visitor.depart(link, fields)));
}

function buttons(step: Step): string[] {
  return step.page.forms.flatMap((form) => form.buttons.map(({ value }) => value));
}

describe('a forwarded link', () => {
  test('is refused to somebody else, names nothing, and stays good for its person', async () => {
    const { taskId, link } = await scene.stopped('alice');
    const bob = await signedIn(link, 'bob');
    const page = await bob.get(link);
    expect(page.status).toBe(403);
    for (const word of ['alice', 'Alice', 'Fakebox', 'Fetch items', taskId])
      expect(page.html).not.toContain(word);
    expect(buttons(page)).toEqual(['switch-person']);
    const before = scene.fake.calls.length;
    // Also with a form that Bob makes himself.
    const csrf = page.page.forms[0]?.fields.find(([name]) => name === 'csrf')?.[1] ?? '';
    for (const action of ['continue', 'approve', 'save', 'decline', 'retry']) {
      const pressed = await bob.post(link, { csrf, action });
      expect(pressed.status).toBe(403);
      expect(pressed.page.movesTo).toBeUndefined();
    }
    expect(scene.fake.calls.length).toBe(before);
    const alice = await signedIn(link, 'alice');
    expect((await finish(alice, link)).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });

  test('asks an unknown browser who it is, before it shows anything', async () => {
    const { taskId, link } = await scene.stopped('alice');
    const somebody = scene.visitor();
    const page = await somebody.get(link);
    expect(page.status).toBe(200);
    expect(buttons(page)).toEqual(['sign-in']);
    for (const word of ['alice', 'Alice', 'Fakebox', 'Fetch items', taskId])
      expect(page.html).not.toContain(word);
    const csrf = page.page.forms[0]?.fields.find(([name]) => name === 'csrf')?.[1] ?? '';
    const pressed = await somebody.post(link, { csrf, action: 'continue' });
    expect(pressed.page.movesTo).toBeUndefined();
    expect(buttons(pressed)).toEqual(['sign-in']);
  });

  test('is unknown when it is changed by one character', async () => {
    const { link } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    for (const wrong of [
      `${link.slice(0, -1)}${link.endsWith('A') ? 'B' : 'A'}`,
      link.slice(0, -1),
      `${link}A`,
    ]) {
      const page = await alice.get(wrong);
      expect(page.status).toBe(404);
      expect(buttons(page)).toEqual([]);
    }
  });
});

describe("a forwarded provider address: somebody else's response is refused without a token call", () => {
  test.each([
    ['with a session of their own', true],
    ['without any session', false],
  ])('%s', async (_what, hasSession) => {
    const { taskId, link } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    const departure = await alice.depart(link);
    const other = hasSession ? await signedIn((await scene.stopped('bob')).link, 'bob') : scene.visitor();
    const before = exchanges();
    const callback = await scene.approve(departure);
    const refused = await arrive(other, callback);
    expect(refused.status).toBe(403);
    expect(refused.html).not.toMatch(/alice/i);
    // A denial by somebody else does not end the task either.
    const denied = new URL(callback);
    denied.searchParams.delete('code');
    denied.searchParams.set('error', 'access_denied');
    expect((await arrive(other, denied.href)).status).toBe(403);
    expect(exchanges() - before).toBe(0);
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    expect((await arrive(alice, callback)).page.title).toContain('Done');
  });

  test('in the same browser, after a change of person', async () => {
    const { taskId, link } = await scene.stopped('alice');
    const browser = await signedIn(link, 'alice');
    const callback = await scene.approve(await browser.depart(link));
    const { link: bobs } = await scene.stopped('bob');
    const before = exchanges();
    await browser.person.open(bobs);
    await browser.person.press({ value: 'switch-person' });
    await browser.person.press({ name: 'person', value: 'bob' });
    const refused = await arrive(browser, callback);
    expect(refused.status).toBe(403);
    expect(exchanges() - before).toBe(0);
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
  });

  test('an outcome is shown to nobody else', async () => {
    const { link } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    const back = await alice.get(await scene.approve(await alice.depart(link)), { fromElsewhere: true });
    const outcome = back.location ?? '';
    const bob = await signedIn((await scene.stopped('bob')).link, 'bob');
    expect((await bob.get(outcome)).status).toBe(403);
    expect((await scene.visitor().get(outcome)).status).toBe(404);
    expect((await scene.visitor().get('/outcome/AAAAAAAAAAAAAAAA')).status).toBe(404);
    expect((await alice.get(outcome)).page.title).toContain('Done');
  });
});

test('a session that ended while its person was at the provider does not refuse the response', async () => {
  const { taskId, link } = await scene.stopped('alice');
  const alice = await signedIn(link, 'alice');
  const callback = await scene.approve(await alice.depart(link));
  const all =
    alice.person.cookies.headerFor({ url: new URL(callback), isSameSite: false, isSafeNavigation: true }) ??
    '';
  const binding = all.split('; ').filter((pair) => pair.startsWith('keyturn_attempt_'));
  expect(binding).toHaveLength(1);
  const there = (url: string) =>
    scene.world.keyturn.app.inject({ url, headers: { cookie: binding[0] ?? '' } });
  const back = await there(callback.slice(scene.world.publicUrl.length));
  expect(back.statusCode).toBe(303);
  const page = await there(String(back.headers.location));
  expect(page.statusCode).toBe(200);
  expect(page.body).toContain('Done');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
});

test('two tabs finish in reverse order, each with a cookie of its own that is gone afterwards', async () => {
  const one = await scene.stopped('alice');
  const two = await scene.stopped('alice', { job: 'fetch_others' });
  const alice = await signedIn(one.link, 'alice');
  const first = await scene.approve(await alice.depart(one.link));
  const second = await scene.approve(await alice.depart(two.link));
  const bindings = alice.person.cookies.list().filter(({ name }) => name.startsWith('keyturn_attempt_'));
  expect(bindings).toHaveLength(2);
  for (const binding of bindings)
    expect(binding).toMatchObject({ httpOnly: true, sameSite: 'lax', path: '/' });
  expect((await arrive(alice, second)).page.title).toContain('Done');
  expect((await arrive(alice, first)).page.title).toContain('Done');
  expect((await scene.until('alice', one.taskId, 'completed')).status).toBe('completed');
  expect((await scene.until('alice', two.taskId, 'completed')).status).toBe('completed');
  const left = alice.person.cookies.list().filter(({ name }) => name.startsWith('keyturn_attempt_'));
  expect(left).toEqual([]);
});

test('Continue pressed twice gives two working sign-ins', async () => {
  const { link } = await scene.stopped('alice');
  const alice = await signedIn(link, 'alice');
  const departures = [await alice.depart(link), await alice.depart(link)];
  const parameters = departures.map((url) => new URL(url).searchParams);
  for (const name of ['state', 'code_challenge']) {
    expect(new Set(parameters.map((query) => query.get(name))).size).toBe(2);
  }
  expect((await arrive(alice, await scene.approve(departures[1] ?? ''))).page.title).toContain('Done');
});

describe('another account than before', () => {
  async function reconnect(): Promise<{ alice: Visitor; link: string; taskId: string }> {
    const first = await scene.stopped('alice');
    const alice = await signedIn(first.link, 'alice');
    await finish(alice, first.link);
    await scene.until('alice', first.taskId, 'completed');
    scene.fake.endGrants();
    const again = await scene.stopped('alice');
    return { alice, ...again };
  }

  test('is refused, its token revoked, nothing stored, and the link stays good', async () => {
    const { alice, link, taskId } = await reconnect();
    const owner = scene.caller('alice').owner;
    const [before] = await scene.world.keyturn.ledger.listConnections(owner);
    scene.fake.set({ account: 'account-b' });
    const revoked = scene.fake.count('revoke');
    const page = await finish(alice, link);
    expect(page.status).toBe(409);
    expect(buttons(page)).toContain('retry');
    expect(scene.fake.count('revoke') - revoked).toBeGreaterThan(0);
    const [after] = await scene.world.keyturn.ledger.listConnections(owner);
    expect(after?.connection.generation).toBe(before?.connection.generation);
    expect(after?.connection.status).toBe('needs_sign_in');
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    scene.fake.set({ account: 'account-a' });
    expect((await finish(alice, link)).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });

  test('is taken where the person chose it', async () => {
    const { alice, link, taskId } = await reconnect();
    scene.fake.set({ account: 'account-b' });
    expect((await finish(alice, link, { account: 'other' })).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });

  test('is not let in while nobody can tell which account it is, and holds up no other sign-in', async () => {
    const { alice, link, taskId } = await reconnect();
    scene.fake.set({ account: 'account-b', userinfo: { status: 503, body: {} } });
    const page = await finish(alice, link);
    expect(page.status).toBe(502);
    expect(page.page.url).not.toContain('code=');
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    scene.fake.set({ account: 'account-a', userinfo: null });
    expect((await finish(alice, link)).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
    // The first sign-in, tried again by then, is found out.
    await scene.world.keyturn.engine.sweepNow();
    const [found] = await scene.world.keyturn.ledger.listConnections(scene.caller('alice').owner);
    expect(found?.connection.record?.subject).toBe('account-a');
  });
});

describe('a connection that its person ended', () => {
  test.each([
    ['while its code is exchanged', 'exchanging'],
    ['before the response came', 'started'],
  ])('%s is not brought back by it, and a new sign-in works', async (_what, phase) => {
    const first = await scene.stopped('alice');
    const alice = await signedIn(first.link, 'alice');
    await finish(alice, first.link);
    await scene.until('alice', first.taskId, 'completed');
    scene.fake.endGrants();
    const { link, taskId } = await scene.stopped('alice');
    const { ledger, engine } = scene.world.keyturn;
    const { owner } = scene.caller('alice');
    const [found] = await ledger.listConnections(owner);
    const callback = await scene.approve(await alice.depart(link));
    const end = () => engine.offBoarding.disconnect(owner, found?.connection.id ?? '');
    let page: Step;
    if (phase === 'exchanging') {
      const gate = scene.fake.gate('exchange');
      const coming = arrive(alice, callback);
      await gate.reached;
      await end();
      gate.open();
      page = await coming;
    } else {
      await end();
      page = await arrive(alice, callback);
    }
    expect(page.status).toBe(409);
    expect(buttons(page)).toContain('retry');
    const [after] = await ledger.listConnections(owner);
    expect(after?.connection.status).toBe('revoked');
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    expect((await finish(alice, link)).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });
});

describe('scopes', () => {
  test.each([
    ['with commas', { scopeSeparator: ',' }],
    ['not named in the answer', { omitScope: true }],
    ['more than asked, in another order', { grantedScopes: ['items:write', ...SCOPES.toReversed()] }],
  ] as const)('%s: the task goes on', async (_what, switches) => {
    scene.fake.set(switches);
    const { link, taskId } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    expect((await finish(alice, link)).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });

  test('fewer than needed: one more question with forced consent, then the task ends naming what is missing', async () => {
    scene.fake.set({ grantedScopes: ['items:read'] });
    const { link, taskId, key } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    const short = await finish(alice, link);
    expect(short.status).toBe(409);
    expect(short.html).toContain('items:list');
    const task = await scene.read('alice', taskId);
    expect(task.status).toBe('input_required');
    expect(task.inputs).toHaveLength(1);
    expect(task.inputs[0]?.key).not.toBe(key);
    const again = task.inputs[0]?.url ?? '';
    expect(again).not.toBe(link);
    const retry = short.page.forms.find((form) => form.buttons.some(({ value }) => value === 'retry'));
    expect(retry?.action).toBe(again);
    const departure = await alice.depart(again);
    expect(new URL(departure).searchParams.get('prompt')).toBe('consent');
    const end = await arrive(alice, await scene.approve(departure));
    expect(end.status).toBe(409);
    expect(buttons(end)).not.toContain('retry');
    const failed = await scene.read('alice', taskId);
    expect(failed.status).toBe('failed');
    expect(failed.outcome).toMatchObject({
      code: 4016,
      reason: 'insufficient_scope',
      facts: { missing: ['items:list'] },
    });
  });

  test('fewer in two tabs at once: one more question all the same', async () => {
    scene.fake.set({ grantedScopes: ['items:read'] });
    const { link, taskId } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    const departures = [await alice.depart(link), await alice.depart(link)];
    for (const departure of departures) {
      expect((await arrive(alice, await scene.approve(departure))).status).toBe(409);
    }
    const task = await scene.read('alice', taskId);
    expect(task.status).toBe('input_required');
    expect(task.inputs).toHaveLength(1);
    scene.fake.set({ grantedScopes: 'as-asked' });
    expect((await finish(alice, task.inputs[0]?.url ?? '')).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });

  test('fewer at first, all at the second question: the task goes on', async () => {
    scene.fake.set({ grantedScopes: ['items:read'] });
    const { link, taskId } = await scene.stopped('alice');
    const alice = await signedIn(link, 'alice');
    await finish(alice, link);
    scene.fake.set({ grantedScopes: 'as-asked' });
    const again = (await scene.read('alice', taskId)).inputs[0]?.url ?? '';
    expect((await finish(alice, again)).page.title).toContain('Done');
    expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  });
});

describe('another client of the same person', () => {
  test('uses the connection only after the person has agreed, without a visit to the provider', async () => {
    const mine = await scene.stopped('alice');
    const alice = await signedIn(mine.link, 'alice');
    await finish(alice, mine.link);
    await scene.until('alice', mine.taskId, 'completed');
    const before = scene.fake.count('authorize', 'exchange');
    const second = await scene.stopped('alice', { clientId: 'second-client' });
    const page = await alice.get(second.link);
    expect(page.html).toContain('second-client');
    expect(page.page.title).toContain('Share');
    const form = page.page.forms.find((one) => one.buttons.some(({ value }) => value === 'approve'));
    const done = await alice.post(second.link, {
      ...Object.fromEntries(form?.fields ?? []),
      action: 'approve',
    });
    expect(done.status).toBe(200);
    expect((await scene.until('alice', second.taskId, 'completed')).status).toBe('completed');
    expect(scene.fake.count('authorize', 'exchange') - before).toBe(0);
  });

  test('is not woken by a sign-in for the first', async () => {
    const second = await scene.stopped('alice', { clientId: 'third-client' });
    const mine = await scene.stopped('alice');
    const alice = await signedIn(mine.link, 'alice');
    await finish(alice, mine.link);
    await scene.until('alice', mine.taskId, 'completed');
    expect((await scene.read('alice', second.taskId)).status).toBe('input_required');
    expect((await alice.get(second.link)).page.title).toContain('Share');
  });
});

test('the twenty-first attempt of a link is refused, and an earlier one still works', async () => {
  const { link } = await scene.stopped('alice');
  const alice = await signedIn(link, 'alice');
  const departures: string[] = [];
  for (let one = 0; one < 20; one += 1) departures.push(await alice.depart(link));
  const page = await alice.get(link);
  const form = page.page.forms.find((one) => one.buttons.some(({ value }) => value === 'continue'));
  const refused = await alice.post(link, { ...Object.fromEntries(form?.fields ?? []), action: 'continue' });
  expect(refused.status).toBe(429);
  expect((await arrive(alice, await scene.approve(departures[7] ?? ''))).page.title).toContain('Done');
});
