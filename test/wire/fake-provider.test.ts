/**
 * The fake provider does what its switches say, and counts what it was asked. Raw HTTP, no library in
 * between.
 */
import { createHash, randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openFakeProvider, type FakeProvider } from '../support/fake-provider.ts';
import type { Switches } from '../support/fake-provider-switches.ts';

const REDIRECT = 'http://127.0.0.1:9/callback?fixed=1';
let fake: FakeProvider;

beforeEach(async () => {
  fake = await openFakeProvider();
});

afterEach(async () => {
  await fake.close();
});

type Body = Record<string, unknown>;

/** The authorization response, and the verifier that goes with it. */
async function authorize(scope = 'read write'): Promise<{ back: URL; verifier: string }> {
  const verifier = randomBytes(32).toString('base64url');
  const url = new URL(fake.settings.authorizationEndpoint);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: fake.settings.clientId,
    redirect_uri: REDIRECT,
    state: 'state-1',
    scope,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();
  const response = await fetch(url, { redirect: 'manual' });
  expect(response.status).toBe(302);
  return { back: new URL(response.headers.get('location') ?? ''), verifier };
}

async function post(url: string, form: Record<string, string>): Promise<Response> {
  const { clientId, clientSecret } = fake.settings;
  const basic = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64');
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams(form),
  });
}

async function redeem(code: string, verifier: string): Promise<Response> {
  return post(fake.settings.tokenEndpoint, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  });
}

async function exchange(scope?: string): Promise<Response> {
  const { back, verifier } = await authorize(scope);
  return redeem(back.searchParams.get('code') ?? '', verifier);
}

async function refresh(token: unknown, more: Record<string, string> = {}): Promise<Response> {
  return post(fake.settings.tokenEndpoint, {
    grant_type: 'refresh_token',
    refresh_token: String(token),
    ...more,
  });
}

async function bodyOf(response: Response | Promise<Response>): Promise<Body> {
  return (await (await response).json()) as Body;
}

async function api(token: unknown, scheme = 'Bearer'): Promise<Response> {
  return fetch(fake.settings.apiUrl, { headers: { authorization: `${scheme} ${String(token)}` } });
}

describe('without faults', () => {
  it('runs code, PKCE, refresh, API, identity and revocation, and counts each call', async () => {
    const tokens = await bodyOf(exchange());
    expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope: 'read write' });
    const renewed = await bodyOf(refresh(tokens['refresh_token']));
    expect((await api(renewed['access_token'])).status).toBe(200);
    const who = await fetch(fake.settings.userinfoEndpoint, {
      headers: { authorization: `Bearer ${String(renewed['access_token'])}` },
    });
    expect(await bodyOf(who)).toEqual({ id: 'account-a', scopes: ['read', 'write'] });
    const revoked = await post(fake.settings.revocationEndpoint, { token: String(renewed['refresh_token']) });
    expect(revoked.status).toBe(200);
    expect((await api(renewed['access_token'])).status).toBe(401);
    expect(fake.calls.map(({ kind, status, refreshToken }) => [kind, status, refreshToken])).toEqual([
      ['authorize', 302, undefined],
      ['exchange', 200, undefined],
      ['refresh', 200, 1],
      ['api', 200, undefined],
      ['userinfo', 200, undefined],
      ['revoke', 200, 2],
      ['api', 401, undefined],
    ]);
    expect(fake.count('exchange', 'refresh')).toBe(2);
  });

  it('holds a code to its verifier, its redirect URI and one use', async () => {
    const { back, verifier } = await authorize();
    const code = back.searchParams.get('code') ?? '';
    expect(await bodyOf(redeem(code, 'wrong'))).toMatchObject({ error: 'invalid_grant' });
    const tokens = await bodyOf(redeem(code, verifier));
    expect((await api(tokens['access_token'])).status).toBe(200);
    expect(await bodyOf(redeem(code, verifier))).toMatchObject({ error: 'invalid_grant' });
    expect((await api(tokens['access_token'])).status).toBe(401);
  });

  it('refuses a wrong client, an unknown grant type and an unusable authorization request', async () => {
    const wrong = await fetch(fake.settings.tokenEndpoint, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'x',
        client_id: fake.settings.clientId,
        client_secret: 'wrong',
      }),
    });
    expect(wrong.status).toBe(401);
    expect(await bodyOf(wrong)).toMatchObject({ error: 'invalid_client' });
    const odd = await post(fake.settings.tokenEndpoint, { grant_type: 'password' });
    expect(await bodyOf(odd)).toMatchObject({ error: 'unsupported_grant_type' });
    expect((await fetch(fake.settings.authorizationEndpoint, { redirect: 'manual' })).status).toBe(400);
  });

  it('takes client_secret_post as well', async () => {
    const { back, verifier } = await authorize();
    const response = await fetch(fake.settings.tokenEndpoint, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code: back.searchParams.get('code') ?? '',
        redirect_uri: REDIRECT,
        code_verifier: verifier,
        client_id: fake.settings.clientId,
        client_secret: fake.settings.clientSecret.reveal(),
      }),
    });
    expect(response.status).toBe(200);
  });

  it('takes no spelling of the scheme but Bearer at the API', async () => {
    const tokens = await bodyOf(exchange());
    expect((await api(tokens['access_token'], 'bearer')).status).toBe(401);
  });

  it('remembers every secret and the Referer of every call', async () => {
    const tokens = await bodyOf(exchange());
    expect(fake.secrets).toContain(tokens['access_token']);
    expect(fake.secrets).toContain(tokens['refresh_token']);
    expect(fake.secrets.filter((text) => text.startsWith('fake-code-'))).toHaveLength(1);
    await fetch(fake.settings.apiUrl, { headers: { referer: 'http://127.0.0.1:1/connect/x' } });
    expect(fake.calls.at(-1)?.referer).toBe('http://127.0.0.1:1/connect/x');
  });
});

describe('refresh tokens', () => {
  it('rotate: a used one ends its family', async () => {
    const first = await bodyOf(exchange());
    const second = await bodyOf(refresh(first['refresh_token']));
    expect(second['refresh_token']).not.toBe(first['refresh_token']);
    expect(await bodyOf(refresh(first['refresh_token']))).toMatchObject({ error: 'invalid_grant' });
    expect(await bodyOf(refresh(second['refresh_token']))).toMatchObject({ error: 'invalid_grant' });
    expect((await api(second['access_token'])).status).toBe(401);
    expect(
      fake.calls.filter(({ kind }) => kind === 'refresh').map(({ refreshToken }) => refreshToken),
    ).toEqual([1, 1, 2]);
  });

  it('graceMs: a used one works until the window ends, by the provider’s clock', async () => {
    fake.set({ graceMs: 30_000 });
    const first = await bodyOf(exchange());
    const second = await bodyOf(refresh(first['refresh_token']));
    const again = await refresh(first['refresh_token']);
    expect(again.status).toBe(200);
    fake.set({ clockOffsetMs: 30_000 });
    expect(await bodyOf(refresh(first['refresh_token']))).toMatchObject({ error: 'invalid_grant' });
    expect(await bodyOf(refresh(second['refresh_token']))).toMatchObject({ error: 'invalid_grant' });
  });

  it('rotate off: the same one for good', async () => {
    fake.set({ rotate: false });
    const first = await bodyOf(exchange());
    const second = await bodyOf(refresh(first['refresh_token']));
    expect(second['refresh_token']).toBe(first['refresh_token']);
    expect((await refresh(first['refresh_token'])).status).toBe(200);
  });

  it('omitRefreshToken: left out on refresh, or always', async () => {
    fake.set({ rotate: false, omitRefreshToken: 'on-refresh' });
    const first = await bodyOf(exchange());
    expect(first['refresh_token']).toBeTypeOf('string');
    expect(await bodyOf(refresh(first['refresh_token']))).not.toHaveProperty('refresh_token');
    fake.set({ omitRefreshToken: 'always' });
    expect(await bodyOf(exchange())).not.toHaveProperty('refresh_token');
  });

  it('refuse scopes that were not granted, and log what was asked', async () => {
    const tokens = await bodyOf(exchange('read'));
    const refused = await refresh(tokens['refresh_token'], { scope: 'read write' });
    expect(await bodyOf(refused)).toMatchObject({ error: 'invalid_scope' });
    expect(fake.calls.at(-1)).toMatchObject({ kind: 'refresh', scope: 'read write', error: 'invalid_scope' });
  });

  it('die with endGrants, not with expireAccessTokens', async () => {
    const first = await bodyOf(exchange());
    fake.expireAccessTokens();
    expect((await api(first['access_token'])).status).toBe(401);
    const second = await bodyOf(refresh(first['refresh_token']));
    expect((await api(second['access_token'])).status).toBe(200);
    fake.endGrants();
    expect((await api(second['access_token'])).status).toBe(401);
    expect(await bodyOf(refresh(second['refresh_token']))).toMatchObject({ error: 'invalid_grant' });
  });
});

describe('time', () => {
  it('delayMs: the answer comes late', async () => {
    const { back, verifier } = await authorize();
    fake.set({ delayMs: 120 });
    const before = performance.now();
    expect((await redeem(back.searchParams.get('code') ?? '', verifier)).status).toBe(200);
    expect(performance.now() - before).toBeGreaterThanOrEqual(110);
  });

  it('gate: the work is done, the answer waits', async () => {
    const tokens = await bodyOf(exchange());
    const gate = fake.gate('refresh');
    const pending = refresh(tokens['refresh_token']);
    await gate.reached;
    expect(fake.count('refresh')).toBe(0);
    expect(fake.secrets.filter((text) => text.startsWith('fake-rt-'))).toHaveLength(2);
    gate.open();
    expect((await pending).status).toBe(200);
    expect(fake.count('refresh')).toBe(1);
  });

  it('closes with calls that still wait', async () => {
    const tokens = await bodyOf(exchange());
    const gate = fake.gate('refresh');
    const pending = refresh(tokens['refresh_token']).catch((error: unknown) => error);
    await gate.reached;
    await fake.close();
    expect(await pending).toBeInstanceOf(Error);
  });

  it('dropReply: rotated, and the connection is cut', async () => {
    const tokens = await bodyOf(exchange());
    fake.set({ dropReply: true });
    await expect(refresh(tokens['refresh_token'])).rejects.toThrow('fetch failed');
    fake.set({ dropReply: false });
    expect(fake.calls.at(-1)).toMatchObject({ kind: 'refresh', status: 0, refreshToken: 1 });
    expect(await bodyOf(refresh(tokens['refresh_token']))).toMatchObject({ error: 'invalid_grant' });
  });

  it('accessTokenMs and clockOffsetMs: tokens end by the provider’s clock', async () => {
    fake.set({ accessTokenMs: 60_000 });
    const tokens = await bodyOf(exchange());
    expect((await api(tokens['access_token'])).status).toBe(200);
    fake.set({ clockOffsetMs: 60_000 });
    const late = await api(tokens['access_token']);
    expect(late.status).toBe(401);
    expect(Date.parse(late.headers.get('date') ?? '')).toBeGreaterThan(Date.now() + 50_000);
  });
});

describe('answers of the token endpoint', () => {
  const html = '<html><body>Bad gateway</body></html>';
  const replies: [string, Exclude<Switches['refresh'], { kind: 'tokens' | 'reset' }>, number][] = [
    ['200 that is an error', { kind: 'instead', status: 200, body: { error: 'bad_refresh_token' } }, 200],
    ['502 with a page', { kind: 'instead', status: 502, body: html }, 502],
    [
      '429 with Retry-After',
      { kind: 'instead', status: 429, body: {}, headers: { 'retry-after': '30' } },
      429,
    ],
    ['500 with invalid_grant', { kind: 'instead', status: 500, body: { error: 'invalid_grant' } }, 500],
  ];

  it.each(replies)('%s: nothing is issued or redeemed', async (_name, reply, status) => {
    const { back, verifier } = await authorize();
    const code = back.searchParams.get('code') ?? '';
    fake.set({ exchange: reply });
    const first = await redeem(code, verifier);
    expect(first.status).toBe(status);
    expect(await first.text()).toBe(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
    for (const [name, value] of Object.entries(reply.headers ?? {}))
      expect(first.headers.get(name)).toBe(value);
    fake.set({ exchange: { kind: 'tokens', as: 'json', status: 200 }, refresh: { ...reply, times: 1 } });
    const tokens = await bodyOf(redeem(code, verifier));
    expect((await refresh(tokens['refresh_token'])).status).toBe(status);
    // Once, as it was told; and the token that was presented is still unused.
    expect((await refresh(tokens['refresh_token'])).status).toBe(200);
  });

  it('reset: the connection is cut, the token unused', async () => {
    const tokens = await bodyOf(exchange());
    fake.set({ refresh: { kind: 'reset', times: 2 } });
    await expect(refresh(tokens['refresh_token'])).rejects.toThrow('fetch failed');
    await expect(refresh(tokens['refresh_token'])).rejects.toThrow('fetch failed');
    expect((await refresh(tokens['refresh_token'])).status).toBe(200);
    expect(fake.count('refresh')).toBe(3);
  });

  it.each(['exchange', 'refresh'] as const)('form-encoded on %s alone', async (where) => {
    fake.set({ [where]: { kind: 'tokens', as: 'form', status: 200 } });
    const first = await exchange();
    const text = await first.text();
    const isForm = where === 'exchange';
    expect(first.headers.get('content-type')).toContain(isForm ? 'form-urlencoded' : 'application/json');
    const token = isForm
      ? new URLSearchParams(text).get('refresh_token')
      : (JSON.parse(text) as Body)['refresh_token'];
    const second = await refresh(token);
    expect(second.headers.get('content-type')).toContain(isForm ? 'application/json' : 'form-urlencoded');
  });

  it('JSON as text/plain, with a byte order mark, with status 201', async () => {
    fake.set({ exchange: { kind: 'tokens', as: 'json-as-text', status: 201 } });
    const plain = await exchange();
    expect([plain.status, plain.headers.get('content-type')]).toEqual([201, 'text/plain']);
    fake.set({ exchange: { kind: 'tokens', as: 'json-with-bom', status: 200 } });
    const bytes = new Uint8Array(await (await exchange()).arrayBuffer());
    expect(Array.from(bytes.subarray(0, 3))).toEqual([0xef, 0xbb, 0xbf]);
  });

  it.each([
    ['"3600"', '3600'],
    ['0', 0],
    ['null', null],
    ['-1', -1],
    ['"abc"', 'abc'],
  ])('expires_in: %s', async (_name, expiresIn) => {
    fake.set({ expiresIn });
    expect((await bodyOf(exchange()))['expires_in']).toBe(expiresIn);
  });

  it('expires_in missing', async () => {
    fake.set({ expiresIn: 'missing' });
    expect(await bodyOf(exchange())).not.toHaveProperty('expires_in');
  });

  it('scope: fewer, others, with commas, left out', async () => {
    fake.set({ grantedScopes: ['read'] });
    expect((await bodyOf(exchange('read write')))['scope']).toBe('read');
    fake.set({ grantedScopes: ['admin', 'write', 'read'], scopeSeparator: ',' });
    expect((await bodyOf(exchange('read write')))['scope']).toBe('admin,write,read');
    fake.set({ omitScope: true });
    expect(await bodyOf(exchange())).not.toHaveProperty('scope');
  });

  it('nested: the person’s tokens alone, or beside a bot’s', async () => {
    fake.set({ nested: 'authed-user' });
    const alone = await bodyOf(exchange());
    expect(alone).not.toHaveProperty('access_token');
    const person = alone['authed_user'] as Body;
    expect(await bodyOf(api(person['access_token']))).toMatchObject({ id: 'account-a' });
    fake.set({ nested: 'authed-user-and-bot' });
    const both = await bodyOf(exchange());
    expect(await bodyOf(api(both['access_token']))).toMatchObject({ id: 'bot' });
    expect(both['authed_user']).toHaveProperty('access_token');
  });

  it.each(['bearer', 'BEARER', 'bot'])('token_type: %s', async (tokenType) => {
    fake.set({ tokenType });
    expect((await bodyOf(exchange()))['token_type']).toBe(tokenType);
  });

  it('token_type missing', async () => {
    fake.set({ tokenType: 'missing' });
    expect(await bodyOf(exchange())).not.toHaveProperty('token_type');
  });

  it('tokens of 16 KB, taken back whole', async () => {
    fake.set({ tokenLength: 16_384 });
    const tokens = await bodyOf(exchange());
    expect(String(tokens['refresh_token'])).toHaveLength(16_384);
    expect((await refresh(tokens['refresh_token'])).status).toBe(200);
  });
});

describe('authorization responses', () => {
  it('iss: right, wrong, missing; promised or not', async () => {
    const issOf = async () => (await authorize()).back.searchParams.get('iss');
    expect(await issOf()).toBe(fake.settings.issuer);
    fake.set({ iss: 'wrong' });
    expect(await issOf()).toBe('http://127.0.0.1:9/other');
    fake.set({ iss: 'missing' });
    expect(await issOf()).toBeNull();
    const promised = async () =>
      (await bodyOf(fetch(`${fake.origin}/.well-known/oauth-authorization-server`)))[
        'authorization_response_iss_parameter_supported'
      ];
    expect(await promised()).toBe(true);
    fake.set({ issAdvertised: false });
    expect(await promised()).toBeUndefined();
  });

  it.each([
    ['access_denied', undefined],
    ['temporarily_unavailable', 'Сервис временно недоступен'],
    ['server_error', '<script>alert(1)</script>'],
  ])('error=%s', async (error, description) => {
    fake.set({ authorizeError: { error, ...(description === undefined ? {} : { description }) } });
    const { searchParams } = (await authorize()).back;
    expect(searchParams.get('error')).toBe(error);
    expect(searchParams.get('error_description')).toBe(description ?? null);
    expect(searchParams.get('state')).toBe('state-1');
    expect(searchParams.has('code')).toBe(false);
  });

  it('neither code nor error', async () => {
    fake.set({ authorizeNothing: true });
    const { searchParams } = (await authorize()).back;
    expect([searchParams.has('code'), searchParams.has('error')]).toEqual([false, false]);
  });

  it('extra parameters, a kept query, and the URL to send a second time', async () => {
    fake.set({ extraCallbackParameters: { session_state: 'x', hd: 'example.com' } });
    const { back } = await authorize();
    expect(back.searchParams.get('session_state')).toBe('x');
    expect(back.searchParams.get('fixed')).toBe('1');
    expect(fake.callbacks).toEqual([back.href]);
  });

  it('codes with slash, plus and percent, which have to come back as they were issued', async () => {
    fake.set({ awkwardCodes: true });
    const { back, verifier } = await authorize();
    const code = back.searchParams.get('code') ?? '';
    expect(code).toMatch(/\/a\+b%2Fc%20d=$/);
    expect(await bodyOf(redeem(decodeURIComponent(code), verifier))).toMatchObject({
      error: 'invalid_grant',
    });
    expect((await redeem(code, verifier)).status).toBe(200);
  });

  it('account: who is signed in at the provider', async () => {
    fake.set({ account: 'account-b' });
    const tokens = await bodyOf(exchange());
    expect(await bodyOf(api(tokens['access_token']))).toMatchObject({ id: 'account-b' });
  });
});

describe('answers of the API and the identity endpoint', () => {
  it('api: another answer, as often as told', async () => {
    const tokens = await bodyOf(exchange());
    fake.set({ api: { status: 200, body: { ok: false, error: 'token_expired' }, times: 1 } });
    expect(await bodyOf(api(tokens['access_token']))).toEqual({ ok: false, error: 'token_expired' });
    expect(await bodyOf(api(tokens['access_token']))).toMatchObject({ id: 'account-a' });
  });

  it('userinfo: another answer, the API unmoved', async () => {
    const tokens = await bodyOf(exchange());
    fake.set({ userinfo: { status: 500, body: 'oops' } });
    expect((await fetch(fake.settings.userinfoEndpoint)).status).toBe(500);
    expect((await api(tokens['access_token'])).status).toBe(200);
  });
});

it('stays on loopback', async () => {
  await expect(openFakeProvider({}, { host: '0.0.0.0' })).rejects.toThrow(
    'host: the fake provider stays on loopback',
  );
});
