/** Forms, headers and addresses of the pages under attack: nothing acts but a press on our own page. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openCallbackWorld, type CallbackWorld, type Step, type Visitor } from '../support/callback-world.ts';

let scene: CallbackWorld;
let link: string;
let alice: Visitor;

beforeAll(async () => {
  scene = await openCallbackWorld();
  ({ link } = await scene.stopped('alice'));
  alice = scene.visitor();
  await alice.signIn(link, 'alice');
});

afterAll(async () => {
  await scene.close();
});

async function csrf(visitor: Visitor, at: string): Promise<string> {
  const { page } = await visitor.get(at);
  return page.forms.flatMap((form) => form.fields).find(([name]) => name === 'csrf')?.[1] ?? '';
}

const POSTS = [
  ['/connect', () => link, { action: 'continue' }],
  ['/sign-in', () => '/sign-in?to=/connections', { action: 'sign-in' }],
  ['/connections', () => '/connections', { action: 'disconnect', connection: 'x' }],
] as const;

describe.each(POSTS)('POST %s is refused', (_name, at, fields) => {
  function refused(answer: Step): void {
    expect(answer.status).toBe(403);
    expect(answer.page.movesTo).toBeUndefined();
    expect(answer.headers['content-security-policy']).toContain("frame-ancestors 'none'");
  }

  test('without the CSRF field', async () => {
    refused(await alice.post(at(), fields));
  });

  test("with another session's CSRF field", async () => {
    refused(await alice.post(at(), { ...fields, csrf: await csrf(scene.visitor(), link) }));
  });

  test('with a CSRF field that is there twice', async () => {
    const token = await csrf(alice, link);
    const body = `${new URLSearchParams({ ...fields, csrf: token }).toString()}&csrf=${token}`;
    refused(await alice.postBody(at(), body));
  });

  test('without the session that the CSRF field belongs to', async () => {
    const token = await csrf(alice, link);
    refused(await scene.visitor().post(at(), { ...fields, csrf: token }));
  });

  test.each(['cross-site', 'same-site', 'none'])('from %s, with a good CSRF field', async (site) => {
    const token = await csrf(alice, link);
    refused(await alice.post(at(), { ...fields, csrf: token }, { 'sec-fetch-site': site }));
  });
});

test.each(['', 'toString', 'CONTINUE'])('the action %j does nothing', async (action) => {
  const answer = await alice.post(link, { csrf: await csrf(alice, link), action });
  expect(answer.status).toBe(403);
  expect(answer.page.movesTo).toBeUndefined();
});

describe('a body that is no form of ours', () => {
  test.each([
    ['text', 'text/plain', 'csrf=1'],
    ['JSON', 'application/json', '{"csrf":["a"],"action":{"toString":1}}'],
    ['JSON null', 'application/json', 'null'],
    ['broken JSON', 'application/json', '{"csrf":'],
    ['XML', 'application/xml', '<a/>'],
    ['a file', 'multipart/form-data; boundary=x', '--x--'],
    ['an empty body', 'application/x-www-form-urlencoded', ''],
    ['a prototype', 'application/x-www-form-urlencoded', '__proto__[csrf]=1&constructor=2'],
    ['a broken percent sign', 'application/x-www-form-urlencoded', 'csrf=%E0%A4%A'],
    ['200 000 bytes', 'application/x-www-form-urlencoded', `csrf=${'x'.repeat(200_000)}`],
    ['ten thousand fields', 'application/x-www-form-urlencoded', 'a=1&'.repeat(10_000)],
  ])('%s is refused with a page', async (_what, type, body) => {
    for (const [, at] of POSTS) {
      const answer = await alice.postBody(at(), body, { 'content-type': type });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    }
    expect(scene.logLines.join('')).not.toContain('page.failed');
  });
});

describe('a sign-in returns nowhere but to our own pages', () => {
  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/connect/../../evil',
    '/connect/short',
    '/connections?x=1',
    '/connections#x',
    '/connections\r\nset-cookie: a=b',
    '/callback/fake?code=1',
    '/sign-in/return',
    'javascript:alert(1)',
    '',
  ])('%j', async (to) => {
    const token = await csrf(alice, link);
    const answer = await alice.post(`/sign-in?to=${encodeURIComponent(to)}`, {
      csrf: token,
      action: 'sign-in',
    });
    expect(answer.status).toBe(403);
    expect(answer.page.movesTo).toBeUndefined();
    expect(answer.headers['set-cookie']).toBeUndefined();
  });

  test('with two targets', async () => {
    const token = await csrf(alice, link);
    const answer = await alice.post('/sign-in?to=/connections&to=//evil.example', { csrf: token });
    expect(answer.status).toBe(403);
  });

  test('a return with a state that this browser did not start is refused', async () => {
    const started = await alice.post('/sign-in?to=/connections', {
      csrf: await csrf(alice, link),
      action: 'sign-in',
    });
    const state = new URL(started.page.movesTo ?? '').searchParams.get('state') ?? '';
    const stranger = await scene
      .visitor()
      .get(`/sign-in/return?code=x&state=${state}`, { fromElsewhere: true });
    expect(stranger.status).toBe(400);
    for (const query of [
      '',
      '?code=x',
      `?code=x&state=${state}&state=${state}`,
      `?code=x&code=y&state=${state}`,
      '?code=x&state=nope',
    ]) {
      expect((await alice.get(`/sign-in/return${query}`, { fromElsewhere: true })).status).toBe(400);
    }
  });

  test('a sign-in that the issuer could not do is not called a denial', async () => {
    const begin = async (): Promise<string> => {
      const started = await alice.post('/sign-in?to=/connections', {
        csrf: await csrf(alice, link),
        action: 'sign-in',
      });
      return new URL(started.page.movesTo ?? '').searchParams.get('state') ?? '';
    };
    const iss = encodeURIComponent(scene.world.sandbox.issuer.issuer);
    const back = async (error: string): Promise<Step> =>
      alice.get(`/sign-in/return?error=${error}&state=${await begin()}&iss=${iss}`, { fromElsewhere: true });
    expect((await back('access_denied')).page.title).toContain('did not give access');
    expect((await back('temporarily_unavailable')).status).toBe(502);
    expect((await back('server_error')).status).toBe(502);
  });

  test('each return is spent once, and signs in with a new session', async () => {
    const visitor = scene.visitor();
    await visitor.get(link);
    const before = await csrf(visitor, link);
    await visitor.signIn(link, 'alice');
    const after = await csrf(visitor, link);
    expect(after).not.toBe('');
    expect(after).not.toBe(before);
    const returned = visitor.person.visits.find(({ url }) => url.includes('/sign-in/return'));
    expect((await visitor.get(returned?.url ?? '', { fromElsewhere: true })).status).toBe(400);
  });
});

test('every page is protected against frames, sniffing, caching and leaks of its address', async () => {
  const pages = [
    await alice.get('/'),
    await alice.get(link),
    await alice.get('/connect/unknown-unknown-unknown'),
    await alice.get('/connections'),
    await alice.get('/callback/fake'),
    await alice.get('/outcome/AAAAAAAAAAAAAAAA'),
    await alice.get('/sign-in/return'),
    await alice.post(link, {}),
    await alice.post('/callback/fake', {}),
  ];
  for (const { headers, html } of pages) {
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers['content-security-policy']).toContain("form-action 'self'");
    expect(headers['x-frame-options']).toBe('DENY');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['referrer-policy']).toBe('no-referrer');
    expect(html).not.toMatch(/<script|\son\w+=/i);
  }
});

test('a browser that starts sign-ins over and over keeps small cookies, and the last of them works', async () => {
  const visitor = scene.visitor();
  const { link: own } = await scene.stopped('bob');
  for (let one = 0; one < 40; one += 1) {
    await visitor.post('/sign-in?to=/connections', { csrf: await csrf(visitor, own), action: 'sign-in' });
  }
  await visitor.signIn(own, 'bob');
  for (let one = 0; one < 18; one += 1) await visitor.depart(own);
  const more = await scene.stopped('bob');
  for (let one = 0; one < 18; one += 1) await visitor.depart(more.link);
  const url = new URL(own);
  const header = visitor.person.cookies.headerFor({ url, isSameSite: true, isSafeNavigation: true }) ?? '';
  expect(header.length).toBeLessThan(8_192);
  const back = await visitor.get(await scene.approve(await visitor.depart(more.link)), {
    fromElsewhere: true,
  });
  expect((await visitor.get(back.location ?? '')).page.title).toContain('Done');
});

test('an address that asks for too many pages is told to wait', async () => {
  const small = await openCallbackWorld({ pagesPerMinute: 5 });
  try {
    const visitor = small.visitor();
    for (let one = 0; one < 5; one += 1) expect((await visitor.get('/')).status).toBe(200);
    const refused = await visitor.get('/callback/fake?state=x&code=y', { fromElsewhere: true });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(refused.page.title).toContain('Too many requests');
    expect((await small.world.keyturn.app.inject('/healthz')).statusCode).not.toBe(429);
  } finally {
    await small.close();
  }
});

test('forged Host and forwarded headers change no address', async () => {
  const token = await csrf(alice, link);
  const form = { csrf: token, action: 'continue' };
  const forged = {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    forwarded: 'host=evil.example',
  };
  const answer = await alice.post(link, form, { ...forged, host: 'evil.example' });
  const query = new URL(answer.page.movesTo ?? '').searchParams;
  expect(query.get('redirect_uri')).toBe(`${scene.world.publicUrl}/callback/fake`);
  expect(answer.html).not.toContain('evil.example');
});

test('fields of a tenant that nobody asked for reach neither the provider nor the API', async () => {
  await scene.disconnect('bob');
  const { link: own, taskId } = await scene.stopped('bob');
  const bob = scene.visitor();
  await bob.signIn(own, 'bob');
  const departure = await bob.depart(own, { 'tenant.host': 'evil.example', 'tenant.__proto__': 'x' });
  expect(departure).not.toContain('evil');
  const back = await bob.get(await scene.approve(departure), { fromElsewhere: true });
  expect((await bob.get(back.location ?? '')).page.title).toContain('Done');
  await scene.until('bob', taskId, 'completed');
  const [found] = await scene.world.keyturn.ledger.listConnections(scene.caller('bob').owner);
  expect(found?.connection.record?.captured).toEqual({});
});

test('an attempt cookie shows nothing but randomness, and a foreign one opens nothing', async () => {
  const { link: own } = await scene.stopped('alice', { job: 'fetch_others' });
  const departure = await alice.depart(own);
  const callback = await scene.approve(departure);
  const state = new URL(departure).searchParams.get('state') ?? '';
  const header =
    alice.person.cookies.headerFor({ url: new URL(callback), isSameSite: true, isSafeNavigation: true }) ??
    '';
  expect(header).not.toContain(state);
  const [name = ''] = /keyturn_attempt_[\w-]+/.exec(header) ?? [];
  for (const value of ['', 'x', 'x'.repeat(5_000), '%00']) {
    const answer = await scene.world.keyturn.app.inject({
      method: 'GET',
      url: callback.slice(scene.world.publicUrl.length),
      headers: { cookie: `${name}=${value}` },
    });
    expect(answer.statusCode).toBe(403);
  }
  expect(scene.other.count('exchange')).toBe(0);
});
