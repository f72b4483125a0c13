/** How providers say that a grant is over, and what must not be taken for it. */
import { describe, expect, test } from 'vitest';
import { readTokenAnswer, type Redeemed } from '../../src/provider/token-answer.ts';
import { presetProfile } from '../support/preset-profile.ts';

function judge(preset: string, redeemed: Redeemed, status: number, body: unknown) {
  const raw = { status, contentType: 'application/json', body: JSON.stringify(body) };
  const answer = readTokenAnswer(presetProfile(preset), redeemed, raw);
  return answer.kind;
}

const DISCORD = 'Invalid "refresh_token" in request.';

describe('an error at a refresh', () => {
  test.each<[string, number, unknown]>([
    ['github-app', 200, { error: 'bad_refresh_token' }],
    ['slack', 200, { ok: false, error: 'invalid_refresh_token' }],
    ['slack', 200, { ok: false, error: 'token_revoked' }],
    ['slack', 200, { ok: false, error: 'token_expired' }],
    ['hubspot', 400, { status: 'BAD_REFRESH_TOKEN', message: 'missing or invalid refresh token' }],
    ['hubspot', 400, { error: 'invalid_grant', status: 'BAD_REFRESH_TOKEN' }],
    ['atlassian', 403, { error: 'unauthorized_client', error_description: 'refresh_token is invalid' }],
    ['atlassian', 403, { error: 'invalid_grant' }],
    ['discord', 400, { error: 'invalid_request', error_description: DISCORD }],
    ['discord', 400, { error: 'invalid_grant' }],
    ['zoom', 401, { reason: 'Invalid Token!', error: 'invalid_request' }],
    ['quickbooks', 400, { error: 'invalid_grant' }],
    ['salesforce', 400, { error: 'invalid_grant', error_description: 'expired access/refresh token' }],
    ['airtable', 401, { error: 'invalid_grant' }],
  ])('of %s (%i %j) means a dead grant', (preset, status, body) => {
    expect(judge(preset, 'refresh token', status, body)).toBe('dead');
  });

  test.each<[string, number, unknown, string]>([
    ['atlassian', 401, { error: 'unauthorized_client' }, 'misconfigured'],
    ['atlassian', 401, { error: 'access_denied', error_description: 'Unauthorized' }, 'misconfigured'],
    ['discord', 400, { error: 'invalid_request', error_description: 'Missing "client_id"' }, 'misconfigured'],
    ['discord', 400, { error: 'invalid_request' }, 'misconfigured'],
    ['discord', 400, { error: 'invalid_request', error_description: [DISCORD] }, 'misconfigured'],
    ['discord', 503, { error: 'invalid_request', error_description: DISCORD }, 'later'],
    ['zoom', 400, { reason: 'Invalid client_id', error: 'invalid_request' }, 'misconfigured'],
    ['zoom', 400, { reason: 'Invalid Token!', error: 'invalid_client' }, 'misconfigured'],
    ['slack', 200, { ok: false, error: 'bad_client_secret' }, 'misconfigured'],
    ['slack', 200, { ok: false, error: 'invalid_grant_type' }, 'misconfigured'],
    ['slack', 200, { ok: false, error: 'ratelimited' }, 'later'],
    ['github-app', 200, { error: 'incorrect_client_credentials' }, 'misconfigured'],
    ['google', 401, { error: 'unauthorized_client' }, 'misconfigured'],
    ['figma', 400, { error: true, status: 400, message: 'Invalid refresh token' }, 'malformed'],
    ['spotify', 400, { error: 'something_new' }, 'malformed'],
  ])('of %s (%i %j) condemns nobody', (preset, status, body, kind) => {
    expect(judge(preset, 'refresh token', status, body)).toBe(kind);
  });
});

describe('an error at a code exchange', () => {
  test.each<[string, number, unknown, string]>([
    ['github', 200, { error: 'bad_verification_code' }, 'dead'],
    ['slack', 200, { ok: false, error: 'invalid_code' }, 'dead'],
    ['slack', 200, { ok: false, error: 'no_user_scopes' }, 'misconfigured'],
    // What is said of refresh tokens there is not said of codes.
    ['atlassian', 403, { error: 'unauthorized_client' }, 'misconfigured'],
    ['discord', 400, { error: 'invalid_request', error_description: DISCORD }, 'misconfigured'],
    ['discord', 400, { error: 'invalid_grant' }, 'dead'],
  ])('of %s (%i %j) is judged by what was redeemed', (preset, status, body, kind) => {
    expect(judge(preset, 'code', status, body)).toBe(kind);
  });
});
