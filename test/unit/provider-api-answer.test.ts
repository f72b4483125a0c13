import { describe, expect, test } from 'vitest';
import {
  judgeApiAnswer,
  neededScopes,
  retryAfterMs,
  waitMs,
  type Judgement,
} from '../../src/provider/api-answer.ts';
import { plainProfile, presetProfile } from '../support/preset-profile.ts';

const NOW = 1_764_547_200_000;

function judge(preset: string, status: number, body: unknown = '', challenge = ''): Judgement {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return judgeApiAnswer(presetProfile(preset), { status, challenge, body: text });
}

describe('an answer of a provider API', () => {
  test.each<[string, string, number, unknown, string, Judgement]>([
    ['a good answer', 'github', 200, { id: 1 }, '', 'ok'],
    ['bad credentials', 'github', 401, { message: 'Bad credentials' }, '', 'expired'],
    ['a rate limit as 403', 'github', 403, { message: 'API rate limit exceeded for user' }, '', 'limited'],
    [
      'a secondary limit as 403',
      'github',
      403,
      { message: 'You have exceeded a secondary rate limit' },
      '',
      'limited',
    ],
    [
      'a missing permission',
      'github',
      403,
      { message: 'Resource not accessible by integration' },
      '',
      'insufficient',
    ],
    ['another 403', 'github', 403, { message: 'Repository access blocked' }, '', 'ok'],
    ['a 404', 'github', 404, { message: 'Not Found' }, '', 'ok'],
    ['an outage', 'github', 503, '', '', 'unavailable'],
    ['an expired token as 200', 'slack', 200, { ok: false, error: 'token_expired' }, '', 'expired'],
    ['a revoked token as 200', 'slack', 200, { ok: false, error: 'token_revoked' }, '', 'expired'],
    [
      'a missing scope as 200',
      'slack',
      200,
      { ok: false, error: 'missing_scope', needed: 'a' },
      '',
      'insufficient',
    ],
    ['a limit as 200', 'slack', 200, { ok: false, error: 'ratelimited' }, '', 'limited'],
    ['another error as 200', 'slack', 200, { ok: false, error: 'channel_not_found' }, '', 'ok'],
    [
      'a message that quotes an error',
      'slack',
      200,
      { ok: true, text: '"ok":false,"error":"token_expired"' },
      '',
      'ok',
    ],
    [
      'a 401 for a scope',
      'atlassian',
      401,
      { code: 401, message: 'Unauthorized; scope does not match' },
      '',
      'insufficient',
    ],
    ['a plain 401', 'atlassian', 401, { code: 401, message: 'Unauthorized' }, '', 'expired'],
    ['an expired token as 403', 'figma', 403, { status: 403, err: 'Invalid token' }, '', 'expired'],
    [
      'a GraphQL error with 200',
      'linear',
      200,
      { errors: [{ extensions: { type: 'authentication error' } }] },
      '',
      'expired',
    ],
    [
      'a GraphQL limit with 400',
      'linear',
      400,
      { errors: [{ extensions: { code: 'RATELIMITED' } }] },
      '',
      'limited',
    ],
    ['a list of errors', 'salesforce', 401, [{ errorCode: 'INVALID_SESSION_ID' }], '', 'expired'],
    ['a limit in a list', 'salesforce', 403, [{ errorCode: 'REQUEST_LIMIT_EXCEEDED' }], '', 'limited'],
    ['a missing scope as 401', 'dropbox', 401, { error: { '.tag': 'missing_scope' } }, '', 'insufficient'],
    ['an expired token', 'dropbox', 401, { error: { '.tag': 'expired_access_token' } }, '', 'expired'],
    ['a fault inside 200', 'quickbooks', 200, { Fault: { Error: [{ code: '3200' }] } }, '', 'expired'],
    ['a missing scope as 400', 'zoom', 400, { code: 4711, message: 'x' }, '', 'insufficient'],
    ['a limit as 400', 'stripe', 400, { error: { code: 'rate_limit' } }, '', 'limited'],
    ['an overload', 'notion', 529, '', '', 'limited'],
    ['a challenge', 'box', 403, '', 'Bearer error="insufficient_scope"', 'insufficient'],
    [
      'a token of the old kind',
      'shopify',
      403,
      { errors: 'Non-expiring access tokens are no longer accepted for the Admin API' },
      '',
      'expired',
    ],
    [
      'a narrow grant',
      'google',
      403,
      { error: { details: [{ reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' }] } },
      '',
      'insufficient',
    ],
    [
      'a user limit as 403',
      'google',
      403,
      { error: { errors: [{ reason: 'userRateLimitExceeded' }] } },
      '',
      'limited',
    ],
  ])('%s (%s, %i) is judged by the profile', (_, preset, status, body, challenge, judgement) => {
    expect(judge(preset, status, body, challenge)).toBe(judgement);
  });

  test('bodies that are no JSON are judged by their status', () => {
    expect(judge('slack', 200, '<html>')).toBe('ok');
    expect(judge('linear', 401, 'no')).toBe('expired');
  });

  test('words far behind the beginning of a body do not count', () => {
    expect(judge('github', 403, `${' '.repeat(5_000)}rate limit`)).toBe('ok');
  });
});

describe('scopes that an answer names as missing', () => {
  test('are read from the challenge', () => {
    const answer = { status: 403, body: '', challenge: 'Bearer error="insufficient_scope", scope="a b"' };
    expect(neededScopes(plainProfile(), answer)).toEqual(['a', 'b']);
  });

  test('are read from the body where the profile knows the place', () => {
    const slack = { status: 200, body: '{"ok":false,"needed":"search:read,users:read"}', challenge: '' };
    expect(neededScopes(presetProfile('slack'), slack)).toEqual(['search:read', 'users:read']);
    const dropbox = { status: 401, body: '{"error":{"required_scope":"files.content.read"}}', challenge: '' };
    expect(neededScopes(presetProfile('dropbox'), dropbox)).toEqual(['files.content.read']);
  });

  test('are none when nothing names them', () => {
    expect(neededScopes(presetProfile('github'), { status: 403, body: '{}', challenge: '' })).toEqual([]);
  });
});

describe('how long to wait', () => {
  test.each([
    ['30', 30_000],
    ['0', 0],
    ['Tue, 01 Dec 2026 00:00:00 GMT', Date.UTC(2026, 11, 1) - NOW > 0 ? 86_400_000 : undefined],
    ['soon', undefined],
    ['-5', undefined],
    ['999999999', 86_400_000],
  ])('Retry-After: %s is understood', (header, expected) => {
    expect(retryAfterMs(header, NOW)).toBe(expected);
  });

  test('the reset header of a profile counts when Retry-After is missing', () => {
    const github = presetProfile('github');
    const reset = new Headers({ 'x-ratelimit-reset': String(NOW / 1_000 + 60) });
    expect(waitMs(github, reset, NOW)).toBe(60_000);
    reset.set('retry-after', '5');
    expect(waitMs(github, reset, NOW)).toBe(5_000);
    expect(waitMs(github, new Headers({ 'x-ratelimit-reset': '1' }), NOW)).toBe(0);
    expect(waitMs(github, new Headers(), NOW)).toBeUndefined();
  });

  test('dates, seconds and what is known without a header count as well', () => {
    const date = new Headers({ 'x-ratelimit-reset': new Date(NOW + 9_000).toISOString() });
    expect(waitMs(presetProfile('atlassian'), date, NOW)).toBe(9_000);
    expect(waitMs(presetProfile('calendly'), new Headers({ 'x-ratelimit-reset': '12' }), NOW)).toBe(12_000);
    expect(waitMs(presetProfile('airtable'), new Headers(), NOW)).toBe(30_000);
    expect(waitMs(presetProfile('quickbooks'), new Headers(), NOW)).toBe(60_000);
  });
});
