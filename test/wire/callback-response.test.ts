/** What an authorization response may look like, and what each wrong one leads to. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FAULTLESS } from '../support/fake-provider-switches.ts';
import { openCallbackWorld, type CallbackWorld, type Step, type Visitor } from '../support/callback-world.ts';

let scene: CallbackWorld;
let alice: Visitor;
let taskId: string;
let link: string;
let callback: string;
let before: number;

beforeAll(async () => {
  scene = await openCallbackWorld();
});

afterAll(async () => {
  await scene.close();
});

beforeEach(async () => {
  scene.fake.set(FAULTLESS);
  await scene.disconnect('alice');
  ({ taskId, link } = await scene.stopped('alice'));
  alice = scene.visitor();
  await alice.signIn(link, 'alice');
  before = exchanges();
});

const exchanges = (): number => scene.fake.count('exchange') + scene.other.count('exchange');

async function deliver(url: string, visitor = alice): Promise<Step> {
  return visitor.get(url, { fromElsewhere: true });
}

/** Delivers, and reads the page at the end. */
async function arrive(url: string, visitor = alice): Promise<Step> {
  const back = await deliver(url, visitor);
  return back.location === undefined ? back : visitor.get(back.location);
}

function changed(url: string, change: (query: URLSearchParams) => void): string {
  const made = new URL(url);
  change(made.searchParams);
  return made.href;
}

/** The flow is as good as before: it can be finished. */
async function stillWorks(): Promise<void> {
  expect(exchanges() - before).toBe(0);
  expect((await scene.read('alice', taskId)).status).toBe('input_required');
  expect((await arrive(callback)).page.title).toContain('Done');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  expect(exchanges() - before).toBe(1);
}

describe('a response that belongs to nothing is refused and changes nothing', () => {
  beforeEach(async () => {
    callback = await scene.approve(await alice.depart(link));
  });

  const wrong: [string, (url: string) => string][] = [
    ['no state', (url) => changed(url, (query) => query.delete('state'))],
    ['an empty state', (url) => changed(url, (query) => query.set('state', ''))],
    ['a random state', (url) => changed(url, (query) => query.set('state', 'r'.repeat(43)))],
    [
      'a truncated state',
      (url) => changed(url, (query) => query.set('state', query.get('state')?.slice(0, -1) ?? '')),
    ],
    [
      'a state with more behind it',
      (url) => changed(url, (query) => query.set('state', `${query.get('state')}#_=_`)),
    ],
    ['a state with a space before it', (url) => url.replace('state=', 'state=+')],
    ['a state that is encoded twice', (url) => url.replace('state=', 'state=%2561')],
    [
      'the same state twice',
      (url) => changed(url, (query) => query.append('state', query.get('state') ?? '')),
    ],
    ['two states', (url) => changed(url, (query) => query.append('state', 'b'))],
    ['two codes', (url) => changed(url, (query) => query.append('code', 'b'))],
    ['a state as an array', (url) => url.replace('state=', 'state[]=')],
    [
      'an error with a random state',
      () => `${scene.world.publicUrl}/callback/fake?error=access_denied&state=nope`,
    ],
    ["another provider's callback", (url) => url.replace('/callback/fake', '/callback/other')],
    ['a provider that does not exist', (url) => url.replace('/callback/fake', '/callback/nobody')],
    ['a provider named like a property', (url) => url.replace('/callback/fake', '/callback/__proto__')],
    ['neither a code nor an error', (url) => changed(url, (query) => query.delete('code'))],
    ['an empty code', (url) => changed(url, (query) => query.set('code', ''))],
    ['a query of 20 000 characters', (url) => `${url}&pad=${'x'.repeat(20_000)}`],
    ['a broken percent sign', (url) => url.replace('state=', 'state=%E0%A4%A')],
    [
      'the issuer of another provider',
      (url) => changed(url, (query) => query.set('iss', scene.other.origin)),
    ],
    [
      'an issuer with a slash behind it',
      (url) => changed(url, (query) => query.set('iss', `${scene.fake.origin}/`)),
    ],
    [
      'an issuer in capitals',
      (url) => changed(url, (query) => query.set('iss', scene.fake.origin.toUpperCase())),
    ],
    ['no issuer where it is promised', (url) => changed(url, (query) => query.delete('iss'))],
    ['an issuer twice', (url) => changed(url, (query) => query.append('iss', scene.fake.origin))],
    [
      'an error of the wrong issuer',
      (url) =>
        changed(url, (query) => {
          query.delete('code');
          query.set('error', 'access_denied');
          query.set('iss', scene.other.origin);
        }),
    ],
  ];

  test.each(wrong)('%s', async (_what, make) => {
    const answer = await deliver(make(callback));
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(answer.headers['content-type']).toContain('text/html');
    expect(answer.headers['content-security-policy']).toContain("default-src 'none'");
    await stillWorks();
  });

  test.each(['POST', 'PUT', 'HEAD'] as const)('%s instead of GET', async (method) => {
    const answer = await scene.world.keyturn.app.inject({
      method,
      url: callback.slice(scene.world.publicUrl.length),
      headers: {
        cookie:
          alice.person.cookies.headerFor({
            url: new URL(callback),
            isSameSite: true,
            isSafeNavigation: true,
          }) ?? '',
      },
    });
    expect(answer.statusCode).toBe(405);
    expect(answer.headers['allow']).toBe('GET');
    await stillWorks();
  });
});

describe('a response passes', () => {
  test('with parameters that nobody asked for', async () => {
    scene.fake.set({
      extraCallbackParameters: {
        session_state: 'a',
        scope: 'everything',
        authuser: '0',
        hd: 'example.com',
        constructor: 'x',
      },
    });
    callback = await scene.approve(await alice.depart(link));
    await stillWorks();
  });

  test('with a code of awkward characters, which arrives as it was issued', async () => {
    scene.fake.set({ awkwardCodes: true });
    callback = await scene.approve(await alice.depart(link));
    await stillWorks();
  });
});

describe('at the provider', () => {
  test('denied: the task ends at once, no token call is made, and the state is spent', async () => {
    scene.fake.set({ authorizeError: { error: 'access_denied', description: '<b>Доступ</b> запрещён' } });
    callback = await scene.approve(await alice.depart(link));
    const page = await arrive(callback);
    expect(page.page.title).toContain('did not give access');
    expect(page.html).not.toContain('Доступ');
    const task = await scene.read('alice', taskId);
    expect(task.status).toBe('failed');
    expect(task.outcome).toMatchObject({ kind: 'error', code: 4013, reason: 'access_denied' });
    expect(JSON.stringify(task)).not.toContain('Доступ');
    // With the same state and a code, later: the recorded outcome, no token call.
    const late = changed(callback, (query) => {
      query.delete('error');
      query.delete('error_description');
      query.set('code', 'stolen');
    });
    expect((await arrive(late)).page.title).toContain('did not give access');
    expect(exchanges() - before).toBe(0);
  });

  test.each(['temporarily_unavailable', 'server_error', 'login_required', 'something_new', '<script>'])(
    '%s: a retry is offered, the task waits, the state is spent, and the next sign-in works',
    async (error) => {
      scene.fake.set({ authorizeError: { error } });
      const failed = await scene.approve(await alice.depart(link));
      const page = await arrive(failed);
      expect(page.status).toBe(502);
      expect(page.html).not.toContain('<script>');
      const retry = page.page.forms.find(({ buttons }) => buttons.some(({ value }) => value === 'retry'));
      expect(retry?.action).toBe(link);
      const again = await alice.post(retry?.action ?? '', {
        ...Object.fromEntries(retry?.fields ?? []),
        action: 'retry',
      });
      expect(again.location).toBe(new URL(link).pathname);
      scene.fake.set(FAULTLESS);
      const late = changed(failed, (query) => {
        query.delete('error');
        query.set('code', 'stolen');
      });
      expect((await arrive(late)).status).toBe(502);
      callback = await scene.approve(await alice.depart(link));
      await stillWorks();
    },
  );

  test.each(['unauthorized_client', 'invalid_scope', 'invalid_request'])(
    '%s: the operator is told, and the task ends',
    async (error) => {
      scene.fake.set({ authorizeError: { error } });
      const page = await arrive(await scene.approve(await alice.depart(link)));
      expect(page.status).toBe(500);
      expect(page.page.forms.flatMap(({ buttons }) => buttons).map(({ value }) => value)).not.toContain(
        'retry',
      );
      expect((await scene.read('alice', taskId)).outcome).toMatchObject({ reason: 'provider_misconfigured' });
      expect(scene.logLines.join('')).toContain('provider.misconfigured');
      expect(exchanges() - before).toBe(0);
    },
  );

  test.each([
    ['a status of 200 with an error in it', { status: 200, body: { error: 'bad_verification_code' } }],
    ['an answer without a token', { status: 200, body: {} }],
    ['an empty token', { status: 200, body: { access_token: '', token_type: 'bearer' } }],
    ['a page of HTML', { status: 502, body: '<h1>Bad gateway</h1>' }],
    ['a dead code', { status: 400, body: { error: 'invalid_grant' } }],
  ])('%s from the token endpoint: nothing is stored, and a new sign-in works', async (_what, instead) => {
    scene.fake.set({ exchange: { kind: 'instead', ...instead } });
    const page = await arrive(await scene.approve(await alice.depart(link)));
    expect(page.status).toBeGreaterThanOrEqual(400);
    expect(page.page.forms.flatMap(({ buttons }) => buttons).map(({ value }) => value)).toContain('retry');
    expect(page.html).not.toContain('gateway');
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    expect(exchanges() - before).toBe(1);
    scene.fake.set(FAULTLESS);
    before = exchanges();
    callback = await scene.approve(await alice.depart(link));
    await stillWorks();
  });

  test('a wrong client secret: the task ends with the operator’s matter, and no link is left', async () => {
    scene.fake.set({ exchange: { kind: 'instead', status: 401, body: { error: 'invalid_client' } } });
    const page = await arrive(await scene.approve(await alice.depart(link)));
    expect(page.status).toBe(500);
    expect((await scene.read('alice', taskId)).outcome).toMatchObject({ reason: 'provider_misconfigured' });
    expect((await alice.get(link)).status).toBe(410);
  });
});

test('no code, state or token is ever in a log line, a page’s address or a Referer', async () => {
  callback = await scene.approve(await alice.depart(link));
  await stillWorks();
  const states = scene.fake.callbacks.map((url) => new URL(url).searchParams.get('state') ?? '');
  const lines = scene.logLines.join('');
  expect(lines).toContain('authorization.refused');
  for (const text of [...scene.fake.secrets, ...states].filter((one) => one !== '')) {
    expect(lines).not.toContain(text);
  }
  expect(scene.fake.calls.map(({ referer }) => referer).filter(Boolean)).toEqual([]);
});
