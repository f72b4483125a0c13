/** A provider's API as jobs get it: where a token goes, where it never goes, and what an answer costs. */
import { readFileSync } from 'node:fs';
import nock from 'nock';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { bindApi, type BoundApi, type LiveToken } from '../../src/provider/api.ts';
import type { Profile } from '../../src/provider/profile.ts';
import { secret } from '../../src/secret.ts';
import { plainProfile, presetProfile } from '../support/preset-profile.ts';
import { NOW, openReplayed } from '../support/preset-provider.ts';

beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

interface Bound extends BoundApi {
  /** Generations that were renewed, in order. */
  readonly renewals: number[];
  readonly aborter: AbortController;
}

/** An API whose token is named after its generation: `canary-at-1`, `canary-at-2` after a renewal. */
function bind(profile: Profile, captured: Record<string, string> = {}): Bound {
  const renewals: number[] = [];
  const aborter = new AbortController();
  let generation = 1;
  const live = (): LiveToken => ({
    generation,
    tokens: { accessToken: secret(`canary-at-${generation}`), captured },
  });
  const api = bindApi({
    ...openReplayed(profile),
    signal: aborter.signal,
    wallMs: () => NOW,
    tokenSource: {
      current: () => Promise.resolve(live()),
      renew(judged) {
        renewals.push(judged);
        generation += 1;
        return Promise.resolve(live());
      },
    },
  });
  return { ...api, renewals, aborter };
}

async function caught(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.fail('it went through'),
    (error: unknown) => error,
  );
}

const plain = plainProfile();
const API = 'https://api.plain.example';

function withToken(origin: string, generation = 1) {
  return nock(origin, { reqheaders: { authorization: `Bearer canary-at-${generation}` } });
}

describe('the token', () => {
  test('is sent as Bearer, whatever the job put in its place', async () => {
    withToken(API).get('/items').reply(200, { ok: true });
    const answer = await bind(plain).fetch(`${API}/items`, {
      headers: { authorization: 'Bearer mine', host: 'x' },
    });
    await expect(answer.json()).resolves.toEqual({ ok: true });
  });

  test('is sent in the header that the provider wants', async () => {
    const shop = 'https://acme.myshopify.com';
    const scope = nock(shop, {
      reqheaders: { 'x-shopify-access-token': 'canary-at-1' },
      badheaders: ['authorization'],
    });
    scope.get('/admin/api/2026-10/products.json').reply(200, {});
    await bind(presetProfile('shopify')).fetch(`${shop}/admin/api/2026-10/products.json`);
    expect(scope.isDone()).toBe(true);
  });

  test.each([
    'https://evil.example/items',
    'http://api.plain.example/items',
    'https://api.plain.example:8443/items',
    'https://api.plain.example.evil.example/items',
    'https://user@api.plain.example/items',
  ])('does not go to %s', async (url) => {
    const bound = bind(plain);
    expect(await caught(bound.fetch(url))).toMatchObject({ reason: 'egress_forbidden' });
    expect(bound.renewals).toEqual([]);
  });

  test('that cannot stand in a header is refused and not quoted', async () => {
    const broken = bindApi({
      ...openReplayed(plain),
      signal: new AbortController().signal,
      wallMs: () => NOW,
      tokenSource: {
        current: () =>
          Promise.resolve({ generation: 1, tokens: { accessToken: secret('canary\nx: 1'), captured: {} } }),
        renew: () => expect.fail('renewed'),
      },
    });
    const error = await caught(broken.fetch(`${API}/items`));
    expect(error).toMatchObject({ reason: 'answer_malformed' });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
  });
});

describe('redirects', () => {
  test('inside the origins are followed with the token', async () => {
    withToken(API).get('/old').reply(301, '', { location: '/new' });
    withToken(API).get('/new').reply(200, 'there');
    await expect((await bind(plain).fetch(`${API}/old`)).text()).resolves.toBe('there');
  });

  test.each([
    'https://evil.example/',
    'http://api.plain.example/',
    '//evil.example/',
    'http://169.254.169.254/',
  ])('to %s are not followed at all', async (location) => {
    nock(API).get('/old').reply(302, '', { location });
    const error = await caught(bind(plain).fetch(`${API}/old`));
    expect(error).toMatchObject({ reason: 'egress_forbidden' });
    expect(inspect(error, { depth: Infinity })).not.toContain('canary');
  });

  test('in a circle end', async () => {
    nock(API).get('/round').times(20).reply(302, '', { location: '/round' });
    expect(await caught(bind(plain).fetch(`${API}/round`))).toMatchObject({ reason: 'resource_refused' });
  });

  test('of anything but a read are not followed', async () => {
    nock(API).post('/items').reply(307, '', { location: '/items2' });
    const sent = bind(plain).fetch(`${API}/items`, { method: 'POST', body: '{}' });
    expect(await caught(sent)).toMatchObject({ reason: 'resource_refused', facts: { status: 307 } });
  });

  test('to an address that is none are not followed', async () => {
    nock(API).get('/old').reply(302, '', { location: 'https://' });
    expect(await caught(bind(plain).fetch(`${API}/old`))).toMatchObject({ reason: 'resource_refused' });
  });
});

describe('an expired token', () => {
  test('costs one renewal and one retry', async () => {
    withToken(API, 1).get('/items').reply(401);
    withToken(API, 2).get('/items').reply(200, 'good');
    const bound = bind(plain);
    await expect((await bound.fetch(`${API}/items`)).text()).resolves.toBe('good');
    expect(bound.renewals).toEqual([1]);
  });

  test('is not suspected before the API says so: fifty calls cost no renewal', async () => {
    withToken(API).get('/items').times(50).reply(200, 'good');
    const bound = bind(plain);
    for (let call = 0; call < 50; call += 1) await (await bound.fetch(`${API}/items`)).text();
    expect(bound.renewals).toEqual([]);
  });

  test('a second time straight after a renewal stops, with the generation that was refused', async () => {
    nock(API).get('/items').times(5).reply(401);
    const bound = bind(plain);
    expect(await caught(bound.fetch(`${API}/items`))).toMatchObject({
      reason: 'connection_needs_sign_in',
      facts: { generation: 2, judgedBy: 'api' },
    });
    expect(bound.renewals).toEqual([1]);
  });

  test('may be an answer with status 200, where the profile says so', async () => {
    withToken('https://slack.com', 1).get('/api/x').reply(200, { ok: false, error: 'token_expired' });
    withToken('https://slack.com', 2).get('/api/x').reply(200, { ok: true, n: 1 });
    const bound = bind(presetProfile('slack'));
    await expect((await bound.fetch('https://slack.com/api/x')).json()).resolves.toEqual({ ok: true, n: 1 });
    expect(bound.renewals).toEqual([1]);
  });

  test('sends the body of the request again', async () => {
    withToken(API, 1).post('/items', { name: 'x' }).reply(401);
    withToken(API, 2).post('/items', { name: 'x' }).reply(201);
    const sent = bind(plain).fetch(`${API}/items`, {
      method: 'POST',
      body: '{"name":"x"}',
      headers: { 'content-type': 'application/json' },
    });
    expect((await sent).status).toBe(201);
  });
});

describe('other answers', () => {
  test('a missing scope costs no renewal and names the scope', async () => {
    nock(API)
      .get('/items')
      .reply(403, '', { 'www-authenticate': 'Bearer error="insufficient_scope", scope="items:read"' });
    const bound = bind(plain);
    expect(await caught(bound.fetch(`${API}/items`))).toMatchObject({
      reason: 'insufficient_scope',
      facts: { generation: 1, scopes: ['items:read'] },
    });
    expect(bound.renewals).toEqual([]);
  });

  test('a 401 that means a missing scope costs no renewal', async () => {
    const answer = { code: 401, message: 'Unauthorized; scope does not match' };
    nock('https://api.atlassian.com').get('/x').reply(401, answer);
    const bound = bind(presetProfile('atlassian'));
    expect(await caught(bound.fetch('https://api.atlassian.com/x'))).toMatchObject({
      reason: 'insufficient_scope',
    });
    expect(bound.renewals).toEqual([]);
  });

  test('a limit says how long to wait', async () => {
    nock(API).get('/items').reply(429, '', { 'retry-after': '7' });
    expect(await caught(bind(plain).fetch(`${API}/items`))).toMatchObject({
      reason: 'provider_unavailable',
      facts: { retryAfterMs: 7_000, status: 429 },
    });
  });

  test('an outage is the provider’s', async () => {
    nock(API).get('/items').reply(503, 'canary-page');
    const error = await caught(bind(plain).fetch(`${API}/items`));
    expect(error).toMatchObject({ reason: 'provider_unavailable' });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
  });

  test.each([400, 404, 409, 422, 500])('%i is the job’s own business, with its body', async (status) => {
    nock(API).get('/items').reply(status, { problem: 'x' });
    const answer = await bind(plain).fetch(`${API}/items`);
    expect(answer.status).toBe(status);
    await expect(answer.json()).resolves.toEqual({ problem: 'x' });
  });

  test('a body that was looked at is still whole, with its headers', async () => {
    const body = { ok: true, text: 'x'.repeat(20_000) };
    nock('https://slack.com').get('/api/x').reply(200, body, { 'x-oauth-scopes': 'a,b' });
    const answer = await bind(presetProfile('slack')).fetch('https://slack.com/api/x');
    expect(answer.headers.get('x-oauth-scopes')).toBe('a,b');
    await expect(answer.json()).resolves.toEqual(body);
  });
});

describe('values of the connection', () => {
  test('stand in addresses', async () => {
    withToken('https://quickbooks.api.intuit.com').get('/v3/company/9341/query').reply(200, {});
    const api = bind(presetProfile('quickbooks'), { realmId: '9341' });
    expect((await api.fetch('https://quickbooks.api.intuit.com/v3/company/{realmId}/query')).status).toBe(
      200,
    );
  });

  test('name the origin of an org, and no other', async () => {
    const org = 'https://acme.my.salesforce.com';
    withToken(org).get('/services/data').reply(200, []);
    const api = bind(presetProfile('salesforce'), { instance_url: org });
    expect((await api.fetch('{instance_url}/services/data')).status).toBe(200);
    expect(await caught(api.fetch('https://other.my.salesforce.com/services/data'))).toMatchObject({
      reason: 'egress_forbidden',
    });
  });

  test('that are missing reach nothing', async () => {
    const api = bind(presetProfile('salesforce'));
    expect(await caught(api.fetch('{instance_url}/services/data'))).toMatchObject({
      reason: 'egress_forbidden',
    });
  });
});

test('the issues of a repository, as GitHub answered when it was recorded, are read page by page to their end', async () => {
  const place = 'scenarios/api.github.com/paginate-issues/normalized-fixture.json';
  const file = new URL(place, import.meta.resolve('@octokit/fixtures'));
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as {
    path: string;
    status: number;
    response: { id: number }[];
    headers: Record<string, string>;
  }[];
  for (const { path, status, response, headers } of recorded) {
    const { link = '' } = headers;
    withToken('https://api.github.com').get(path).reply(status, response, { link });
  }
  const api = bind(presetProfile('github'));
  const ids: number[] = [];
  let url: string | undefined = `https://api.github.com${recorded[0]?.path}`;
  while (url !== undefined) {
    const answer: Response = await api.fetch(url);
    const page = (await answer.json()) as { id: number }[];
    ids.push(...page.map((issue) => issue.id));
    url = api.nextPage(answer, page);
  }
  expect(ids).toEqual(recorded.flatMap((one) => one.response.map((issue) => issue.id)));
  expect(nock.isDone()).toBe(true);
});

test('a body that can be read only once is refused before anything is sent', async () => {
  const body = new ReadableStream();
  await expect(bind(plain).fetch(`${API}/items`, { method: 'POST', body })).rejects.toThrow(TypeError);
});

test('the end of the task ends its request', async () => {
  const bound = bind(plain);
  bound.aborter.abort(new Error('the task was cancelled'));
  nock(API).get('/items').reply(200);
  await expect(bound.fetch(`${API}/items`)).rejects.toThrow('the task was cancelled');
});
