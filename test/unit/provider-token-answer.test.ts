import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTokenAnswer, type RawAnswer, type Redeemed } from '../../src/provider/token-answer.ts';
import { plainProfile, presetProfile } from '../support/preset-profile.ts';

const BOTH: Redeemed[] = ['code', 'refresh token'];
const plain = plainProfile();

function json(body: unknown, status = 200, contentType = 'application/json'): RawAnswer {
  return { status, contentType, body: JSON.stringify(body) };
}

const GOOD = { access_token: 'at-1', token_type: 'Bearer', expires_in: 3600, refresh_token: 'rt-1' };

describe.each(BOTH)('a good token in an odd wrapper, on redeeming a %s', (redeemed) => {
  test.each<[string, RawAnswer]>([
    ['JSON', json(GOOD)],
    ['JSON with status 201', json(GOOD, 201)],
    ['JSON sent as text/plain', json(GOOD, 200, 'text/plain')],
    ['JSON without a content type', json(GOOD, 200, '')],
    ['JSON behind a byte order mark', { ...json(GOOD), body: `\uFEFF${JSON.stringify(GOOD)}` }],
    ['JSON between blank lines', { ...json(GOOD), body: `\n\n ${JSON.stringify(GOOD)}\r\n` }],
    ['a lifetime written as text', json({ ...GOOD, expires_in: '3600' })],
    ['a token type in capitals', json({ ...GOOD, token_type: 'BEARER' })],
    ['a token type in small letters', json({ ...GOOD, token_type: 'bearer' })],
    ['no token type', json({ ...GOOD, token_type: undefined })],
    ['a token type of null', json({ ...GOOD, token_type: null })],
    ['a token type of its own', json({ ...GOOD, token_type: 'bot' })],
    ['an empty error beside it', json({ ...GOOD, error: '' })],
    [
      'a form',
      {
        status: 200,
        contentType: 'application/x-www-form-urlencoded; charset=utf-8',
        body: 'access_token=at-1&token_type=bearer&expires_in=3600&refresh_token=rt-1',
      },
    ],
    [
      'a form sent as text',
      {
        status: 200,
        contentType: 'text/plain',
        body: 'access_token=at-1&expires_in=3600&refresh_token=rt-1',
      },
    ],
  ])('%s is understood', (_, raw) => {
    expect(readTokenAnswer(plain, redeemed, raw)).toMatchObject({
      kind: 'tokens',
      accessToken: 'at-1',
      refreshToken: 'rt-1',
      expiresInSeconds: 3600,
    });
  });

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['0', 0],
    ['"0"', '0'],
    ['negative', -1],
    ['a word', 'abc'],
    ['a unit', '3600s'],
    ['an object', {}],
    ['true', true],
    ['ten years', 315_360_000],
  ])('a lifetime that is %s is unknown, and the token is kept', (_, expires_in) => {
    expect(readTokenAnswer(plain, redeemed, json({ ...GOOD, expires_in }))).toMatchObject({
      kind: 'tokens',
      accessToken: 'at-1',
      expiresInSeconds: undefined,
    });
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['empty', ''],
    ['absent', undefined],
  ])('a refresh token and a scope that are %s count as left out', (_, nothing) => {
    const raw = json({ ...GOOD, refresh_token: nothing, scope: nothing });
    expect(readTokenAnswer(plain, redeemed, raw)).toMatchObject({
      kind: 'tokens',
      refreshToken: undefined,
      scopes: undefined,
    });
  });

  test.each<[string, Record<string, unknown>]>([
    ['with spaces', { scope: 'read:org repo' }],
    ['with commas', { scope: 'repo,read:org' }],
    ['with both', { scope: 'repo, read:org' }],
    ['as a list', { scope: ['repo', 'read:org'] }],
    ['as a list named scopes', { scopes: ['repo', 'read:org'] }],
  ])('granted scopes %s are the same set', (_, given) => {
    const answer = readTokenAnswer(plain, redeemed, json({ ...GOOD, ...given }));
    expect(answer).toMatchObject({ kind: 'tokens' });
    expect(answer.kind === 'tokens' && answer.scopes?.toSorted()).toEqual(['read:org', 'repo']);
  });
});

describe.each(BOTH)('an answer that is no token, on redeeming a %s', (redeemed) => {
  test.each<[string, RawAnswer]>([
    ['an empty object', json({})],
    ['an empty access token', json({ ...GOOD, access_token: '' })],
    ['an access token of spaces', json({ ...GOOD, access_token: '   ' })],
    ['an access token that is an object', json({ ...GOOD, access_token: { token: 'at-1' } })],
    ['an access token with a line break', json({ ...GOOD, access_token: 'at-1\r\nx-other: 1' })],
    ['an access token outside ASCII', json({ ...GOOD, access_token: 'at-é' })],
    ['a list', json([GOOD])],
    ['a text', json('at-1')],
    ['camel case', json({ accessToken: 'at-1' })],
    ['a wrapper that the profile does not know', json({ data: GOOD })],
    ['a page', { status: 200, contentType: 'text/html', body: '<html><a href="?a=b">sign in</a></html>' }],
    ['nothing', { status: 200, contentType: 'application/json', body: '' }],
    ['half of it', { status: 200, contentType: 'application/json', body: '{"access_token":"at-1' }],
    ['a redirect', { status: 302, contentType: 'text/html', body: '' }],
    ['no content', { status: 204, contentType: '', body: '' }],
  ])('%s is malformed, and nothing of it is used', (_, raw) => {
    const answer = readTokenAnswer(plain, redeemed, raw);
    expect(answer.kind).toBe('malformed');
    expect(JSON.stringify(answer)).not.toContain('at-1');
  });

  test('an error beside a token outweighs the token', () => {
    const raw = json({ ...GOOD, error: 'invalid_grant' });
    expect(readTokenAnswer(plain, redeemed, raw)).toEqual({ kind: 'dead', code: 'invalid_grant' });
  });

  test.each<[string, RawAnswer, string, string]>([
    ['500', json({}, 500), 'later', 'unnamed'],
    ['500 that speaks of a dead grant', json({ error: 'invalid_grant' }, 500), 'later', 'invalid_grant'],
    ['502 with a page', { status: 502, contentType: 'text/html', body: '<html>' }, 'later', 'status_502'],
    [
      '502, a page called JSON',
      { status: 502, contentType: 'application/json', body: '<p>' },
      'later',
      'status_502',
    ],
    ['503', { status: 503, contentType: '', body: '' }, 'later', 'status_503'],
    ['429', json({ error: 'rate_limited' }, 429), 'later', 'rate_limited'],
    ['408', { status: 408, contentType: '', body: '' }, 'later', 'status_408'],
    [
      '400 temporarily_unavailable',
      json({ error: 'temporarily_unavailable' }, 400),
      'later',
      'temporarily_unavailable',
    ],
    ['400 invalid_grant', json({ error: 'invalid_grant' }, 400), 'dead', 'invalid_grant'],
    ['401 invalid_grant', json({ error: 'invalid_grant' }, 401), 'dead', 'invalid_grant'],
    ['403 invalid_grant', json({ error: 'invalid_grant' }, 403), 'dead', 'invalid_grant'],
    ['200 bad_verification_code', json({ error: 'bad_verification_code' }), 'dead', 'bad_verification_code'],
    ['200 bad_refresh_token', json({ error: 'bad_refresh_token' }), 'dead', 'bad_refresh_token'],
    ['401 invalid_client', json({ error: 'invalid_client' }, 401), 'misconfigured', 'invalid_client'],
    [
      '400 unauthorized_client',
      json({ error: 'unauthorized_client' }, 400),
      'misconfigured',
      'unauthorized_client',
    ],
    ['400 invalid_scope', json({ error: 'invalid_scope' }, 400), 'misconfigured', 'invalid_scope'],
    ['400 invalid_request', json({ error: 'invalid_request' }, 400), 'misconfigured', 'invalid_request'],
  ])('%s is judged by what it means', (_, raw, kind, code) => {
    expect(readTokenAnswer(plain, redeemed, raw)).toEqual({ kind, code });
  });

  test('no text of the provider goes on, only a code that is a word', () => {
    const raw = json({ error: 'Токен at-1 <b>истёк</b>', error_description: 'at-1 is over' }, 400);
    expect(readTokenAnswer(plain, redeemed, raw)).toEqual({
      kind: 'malformed',
      problem: 'error unnamed with status 400',
    });
  });

  test('an error that is an object or a plain yes is an error', () => {
    const nested = json({ ...GOOD, error: { code: 'invalid_grant', message: 'over' } });
    expect(readTokenAnswer(plain, redeemed, nested)).toEqual({ kind: 'dead', code: 'invalid_grant' });
    const yes = json({ error: true, status: 400, message: 'no' }, 400);
    expect(readTokenAnswer(plain, redeemed, yes).kind).toBe('malformed');
    expect(readTokenAnswer(plain, redeemed, json({ ...GOOD, error: true })).kind).toBe('malformed');
  });

  test('whatever comes, the answer is one of the named kinds', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 200, max: 599 }),
        fc.constantFrom('application/json', 'text/html', 'application/x-www-form-urlencoded', ''),
        fc.oneof(fc.string(), fc.json(), fc.constant(JSON.stringify(GOOD))),
        (status, contentType, body) => {
          const answer = readTokenAnswer(plain, redeemed, { status, contentType, body });
          expect(['tokens', 'dead', 'misconfigured', 'later', 'malformed']).toContain(answer.kind);
          if (answer.kind === 'tokens') expect(answer.accessToken).toMatch(/^[\x21-\x7e]+$/);
        },
      ),
    );
  });
});

describe('user tokens and bot tokens', () => {
  const slack = presetProfile('slack');
  const bot = { ok: true, access_token: 'xoxb-bot', token_type: 'bot', team: { id: 'T1' } };
  const authed_user = { id: 'U1', scope: 'search:read', access_token: 'xoxp-user', token_type: 'user' };

  test('the user token is taken from its place, beside a bot token or alone', () => {
    for (const body of [
      { ...bot, authed_user },
      { ok: true, authed_user },
    ]) {
      expect(readTokenAnswer(slack, 'code', json(body))).toMatchObject({
        kind: 'tokens',
        accessToken: 'xoxp-user',
        scopes: ['search:read'],
      });
    }
  });

  test('a bot token is never taken in its stead', () => {
    for (const body of [bot, { ...bot, authed_user: { id: 'U1' } }, { ...bot, authed_user: null }]) {
      const answer = readTokenAnswer(slack, 'code', json(body));
      expect(answer.kind).toBe('malformed');
      expect(JSON.stringify(answer)).not.toContain('xoxb');
    }
    expect(readTokenAnswer(slack, 'refresh token', json(bot)).kind).toBe('malformed');
  });

  test('after a refresh the user token stands at the top', () => {
    const body = {
      ok: true,
      access_token: 'xoxp-2',
      refresh_token: 'xoxe-2',
      token_type: 'user',
      expires_in: 43200,
    };
    expect(readTokenAnswer(slack, 'refresh token', json(body))).toMatchObject({
      kind: 'tokens',
      accessToken: 'xoxp-2',
      refreshToken: 'xoxe-2',
      expiresInSeconds: 43_200,
    });
  });

  test('"ok: false" is an error whatever the status says', () => {
    expect(readTokenAnswer(slack, 'code', json({ ok: false, error: 'invalid_code' }))).toEqual({
      kind: 'dead',
      code: 'invalid_code',
    });
    expect(
      readTokenAnswer(slack, 'refresh token', json({ ok: false, error: 'invalid_refresh_token' })),
    ).toEqual({
      kind: 'dead',
      code: 'invalid_refresh_token',
    });
    expect(readTokenAnswer(slack, 'code', json({ ok: false, error: 'bad_client_secret' })).kind).toBe(
      'misconfigured',
    );
    expect(readTokenAnswer(slack, 'code', json({ ok: false, error: 'ratelimited' })).kind).toBe('later');
  });
});

test('a code of a provider that means a dead grant counts on a refresh only', () => {
  const raw = json({ error: 'unauthorized_client' }, 403);
  const atlassian = presetProfile('atlassian');
  expect(readTokenAnswer(atlassian, 'refresh token', raw).kind).toBe('dead');
  expect(readTokenAnswer(atlassian, 'code', raw).kind).toBe('misconfigured');
});

test('an old HubSpot error without "error" is read from "status"', () => {
  const raw = json({ status: 'BAD_REFRESH_TOKEN', message: 'missing or unknown refresh token' }, 400);
  expect(readTokenAnswer(presetProfile('hubspot'), 'refresh token', raw)).toEqual({
    kind: 'dead',
    code: 'BAD_REFRESH_TOKEN',
  });
});

test('values of the answer that the profile names are kept, numbers as text', () => {
  const body = { ...GOOD, hub_id: 62515, user_id: 123, other: 'x' };
  const answer = readTokenAnswer(presetProfile('hubspot'), 'code', json(body));
  expect(answer).toMatchObject({ captured: { hub_id: '62515', user_id: '123' } });
  expect(JSON.stringify(answer)).not.toContain('"other"');
});
