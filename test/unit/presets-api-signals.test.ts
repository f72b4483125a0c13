/**
 * What the API of each preset says by its answers: the access token is over, a right is missing, too many requests.
 * A provider that is not known to say one of them in a way of its own has the common way (RFC 6750, RFC 6585).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { judgeApiAnswer, neededScopes, waitMs } from '../../src/provider/api-answer.ts';
import { PRESETS } from '../../src/provider/presets.ts';
import { presetProfile } from '../support/preset-profile.ts';

/** 1 December 2026, UTC, in milliseconds. */
const NOW = Date.UTC(2026, 11, 1);

interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly challenge?: string;
}

interface Limit extends Answer {
  /** Headers that tell how long to wait. */
  readonly headers?: Record<string, string>;
  readonly waitMs: number | undefined;
}

interface Signals {
  readonly expired: readonly Answer[];
  readonly insufficient: readonly (Answer & { readonly scopes?: string[] })[];
  readonly limited: readonly Limit[];
  /** Answers that are the job's own matter. */
  readonly ok: readonly Answer[];
}

const bearer: Answer = { status: 401, challenge: 'Bearer error="invalid_token"' };
const rfc6750 = {
  status: 403,
  challenge: 'Bearer error="insufficient_scope", scope="a b"',
  scopes: ['a', 'b'],
};
const retryAfter: Limit = { status: 429, headers: { 'retry-after': '7' }, waitMs: 7_000 };
const silent: Limit = { status: 429, waitMs: undefined };
const forbidden: Answer = { status: 403, body: { message: 'You may not see this item' } };
const missing: Answer = { status: 404, body: {} };

const github: Signals = {
  expired: [{ status: 401, body: { message: 'Bad credentials' } }],
  insufficient: [
    { status: 403, body: { message: 'Resource not accessible by integration' } },
    { status: 403, body: { message: 'Resource not accessible by personal access token' } },
  ],
  limited: [
    {
      status: 403,
      body: { message: 'API rate limit exceeded for user ID 1.' },
      headers: { 'x-ratelimit-reset': String(NOW / 1_000 + 90) },
      waitMs: 90_000,
    },
    {
      status: 403,
      body: { message: 'You have exceeded a secondary rate limit.' },
      headers: { 'retry-after': '60' },
      waitMs: 60_000,
    },
    retryAfter,
  ],
  ok: [{ status: 403, body: { message: 'Repository access blocked' } }, missing],
};

const SIGNALS: Record<string, Signals> = {
  airtable: {
    expired: [{ status: 401, body: { error: { type: 'AUTHENTICATION_REQUIRED' } } }],
    insufficient: [
      { status: 403, body: { error: 'NOT_AUTHORIZED' } },
      { status: 403, body: { error: { type: 'INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND' } } },
    ],
    limited: [{ status: 429, waitMs: 30_000 }],
    ok: [missing],
  },
  asana: {
    expired: [{ status: 401, body: { errors: [{ message: 'Not Authorized' }] } }],
    insufficient: [rfc6750],
    limited: [retryAfter],
    ok: [{ status: 402, body: { errors: [{ message: 'premium' }] } }, forbidden],
  },
  atlassian: {
    expired: [{ status: 401, body: { code: 401, message: 'Unauthorized' } }],
    insufficient: [{ status: 401, body: { code: 401, message: 'Unauthorized; scope does not match' } }],
    limited: [
      { status: 429, headers: { 'x-ratelimit-reset': '2026-12-01T00:00:20Z' }, waitMs: 20_000 },
      retryAfter,
    ],
    ok: [forbidden],
  },
  box: {
    expired: [bearer],
    insufficient: [
      rfc6750,
      { status: 403, body: { type: 'error', code: 'access_denied_insufficient_permissions' } },
    ],
    limited: [retryAfter],
    ok: [{ status: 403, body: { type: 'error', code: 'access_denied_item_locked' } }],
  },
  calendly: {
    expired: [{ status: 401, body: { title: 'Unauthenticated' } }],
    insufficient: [{ status: 403, body: { title: 'Permission Denied' } }],
    limited: [{ status: 429, headers: { 'x-ratelimit-reset': '41' }, waitMs: 41_000 }],
    ok: [missing],
  },
  discord: {
    expired: [{ status: 401, body: { code: 50025, message: 'Invalid OAuth2 access token' } }],
    insufficient: [
      { status: 403, body: { code: 50001, message: 'Missing Access' } },
      { status: 403, body: { code: 50013, message: 'Missing Permissions' } },
    ],
    limited: [{ status: 429, headers: { 'x-ratelimit-reset-after': '1.5' }, waitMs: 1_500 }, retryAfter],
    ok: [{ status: 403, body: { code: 50007 } }],
  },
  dropbox: {
    expired: [
      { status: 401, body: { error: { '.tag': 'expired_access_token' } } },
      { status: 401, body: { error: { '.tag': 'invalid_access_token' } } },
    ],
    insufficient: [
      {
        status: 401,
        body: { error: { '.tag': 'missing_scope', required_scope: 'files.content.read' } },
        scopes: ['files.content.read'],
      },
    ],
    limited: [retryAfter],
    ok: [{ status: 409, body: { error: { '.tag': 'path' } } }],
  },
  figma: {
    // Both are 403: the identity endpoint tells them apart afterwards.
    expired: [{ status: 403, body: { status: 403, err: 'Invalid token' } }, bearer],
    insufficient: [],
    limited: [retryAfter],
    ok: [missing],
  },
  github,
  'github-app': github,
  gitlab: {
    expired: [{ status: 401, body: { error: 'invalid_token' } }],
    insufficient: [
      {
        status: 403,
        body: { error: 'insufficient_scope', scope: 'api read_api' },
        scopes: ['api', 'read_api'],
      },
      rfc6750,
    ],
    limited: [
      { status: 429, headers: { 'ratelimit-reset': String(NOW / 1_000 + 5) }, waitMs: 5_000 },
      retryAfter,
    ],
    ok: [forbidden],
  },
  google: {
    expired: [{ status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } }],
    insufficient: [
      rfc6750,
      {
        status: 403,
        body: {
          error: { status: 'PERMISSION_DENIED', details: [{ reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' }] },
        },
      },
      { status: 403, body: { error: { errors: [{ reason: 'insufficientPermissions' }] } } },
    ],
    limited: [
      silent,
      { status: 403, body: { error: { errors: [{ reason: 'rateLimitExceeded' }] } }, waitMs: undefined },
      { status: 403, body: { error: { errors: [{ reason: 'userRateLimitExceeded' }] } }, waitMs: undefined },
    ],
    ok: [{ status: 403, body: { error: { errors: [{ reason: 'domainPolicy' }] } } }],
  },
  hubspot: {
    expired: [{ status: 401, body: { category: 'EXPIRED_AUTHENTICATION' } }],
    insufficient: [{ status: 403, body: { category: 'MISSING_SCOPES' } }],
    limited: [silent],
    ok: [{ status: 403, body: { category: 'BANNED' } }],
  },
  linear: {
    expired: [
      { status: 200, body: { errors: [{ extensions: { type: 'authentication error' } }] } },
      { status: 401 },
    ],
    insufficient: [{ status: 200, body: { errors: [{ extensions: { type: 'forbidden' } }] } }],
    limited: [
      {
        status: 400,
        body: { errors: [{ extensions: { code: 'RATELIMITED' } }] },
        headers: { 'retry-after': '3' },
        waitMs: 3_000,
      },
    ],
    ok: [{ status: 200, body: { data: {} } }],
  },
  microsoft: {
    expired: [{ status: 401, body: { error: { code: 'InvalidAuthenticationToken' } } }],
    insufficient: [
      { status: 403, body: { error: { code: 'accessDenied' } } },
      { status: 403, body: { error: { code: 'Authorization_RequestDenied' } } },
      { status: 403, challenge: 'Bearer error="insufficient_claims"' },
    ],
    limited: [retryAfter, { ...retryAfter, status: 503 }, { ...retryAfter, status: 509 }],
    ok: [forbidden],
  },
  notion: {
    expired: [{ status: 401, body: { code: 'unauthorized' } }],
    insufficient: [{ status: 403, body: { code: 'restricted_resource' } }],
    limited: [
      { ...retryAfter, body: { code: 'rate_limited' } },
      { status: 529, waitMs: undefined },
    ],
    ok: [{ status: 404, body: { code: 'object_not_found' } }],
  },
  quickbooks: {
    expired: [
      { status: 401, body: { Fault: { Error: [{ code: '3200' }], type: 'AUTHENTICATION' } } },
      { status: 200, body: { Fault: { Error: [{ code: '3200' }] } } },
    ],
    insufficient: [{ status: 403, body: { Fault: { Error: [{ code: '003100' }] } } }],
    limited: [{ status: 429, waitMs: 60_000 }],
    ok: [{ status: 200, body: { Fault: { Error: [{ code: '610' }] } } }],
  },
  salesforce: {
    expired: [{ status: 401, body: [{ errorCode: 'INVALID_SESSION_ID' }] }],
    insufficient: [],
    limited: [{ status: 403, body: [{ errorCode: 'REQUEST_LIMIT_EXCEEDED' }], waitMs: undefined }],
    ok: [{ status: 403, body: [{ errorCode: 'INSUFFICIENT_ACCESS' }] }],
  },
  shopify: {
    expired: [
      { status: 401, body: { errors: '[API] Invalid API key or access token' } },
      {
        status: 403,
        body: { errors: 'Non-expiring access tokens are no longer accepted for the Admin API' },
      },
    ],
    insufficient: [rfc6750],
    limited: [retryAfter],
    ok: [forbidden],
  },
  slack: {
    expired: ['token_expired', 'token_revoked', 'invalid_auth', 'account_inactive', 'not_authed'].map(
      (error) => ({ status: 200, body: { ok: false, error } }),
    ),
    insufficient: [
      {
        status: 200,
        body: { ok: false, error: 'missing_scope', needed: 'channels:read,groups:read', provided: 'a' },
        scopes: ['channels:read', 'groups:read'],
      },
    ],
    limited: [retryAfter, { ...retryAfter, status: 200, body: { ok: false, error: 'ratelimited' } }],
    ok: [
      { status: 200, body: { ok: false, error: 'channel_not_found' } },
      { status: 200, body: { ok: true, error: 'token_expired' } },
    ],
  },
  spotify: {
    expired: [{ status: 401, body: { error: { status: 401, message: 'The access token expired' } } }],
    insufficient: [{ status: 403, body: { error: { status: 403, message: 'Insufficient client scope' } } }],
    limited: [retryAfter],
    ok: [{ status: 403, body: { error: { status: 403, message: 'Player command failed' } } }],
  },
  stripe: {
    expired: [{ status: 401, body: { error: { type: 'invalid_request_error' } } }],
    insufficient: [],
    limited: [silent, { status: 400, body: { error: { code: 'rate_limit' } }, waitMs: undefined }],
    ok: [{ status: 400, body: { error: { code: 'parameter_missing' } } }, forbidden],
  },
  xero: {
    expired: [{ status: 401, body: { Title: 'Unauthorized' } }],
    insufficient: [rfc6750],
    limited: [{ ...retryAfter, headers: { 'retry-after': '7', 'x-rate-limit-problem': 'minute' } }],
    ok: [forbidden],
  },
  zendesk: {
    expired: [{ status: 401, body: { error: 'invalid_token' } }],
    insufficient: [rfc6750],
    // The limit of a single endpoint comes as plain text.
    limited: [retryAfter, { ...silent, body: 'Number of allowed API requests per minute exceeded' }],
    ok: [forbidden],
  },
  zoom: {
    expired: [{ status: 401, body: { code: 124, message: 'Invalid access token.' } }],
    insufficient: [
      { status: 400, body: { code: 4711, message: 'x' } },
      {
        status: 400,
        body: { code: 300, message: 'Invalid access token, does not contain scopes:[user:read]' },
      },
    ],
    limited: [retryAfter],
    ok: [{ status: 400, body: { code: 300, message: 'Validation Failed.' } }],
  },
};

function textOf({ body }: Answer): string {
  return typeof body === 'string' ? body : JSON.stringify(body ?? {});
}

function read(answer: Answer) {
  return { status: answer.status, challenge: answer.challenge ?? '', body: textOf(answer) };
}

test('every preset is looked at', () => {
  expect(Object.keys(SIGNALS).toSorted()).toEqual(Object.keys(PRESETS).toSorted());
});

describe.each(Object.entries(SIGNALS))('%s', (name, signals) => {
  const profile = presetProfile(name);

  for (const answer of signals.expired) {
    test(`a token that is over: ${answer.status} ${textOf(answer)}`, () => {
      expect(judgeApiAnswer(profile, read(answer))).toBe('expired');
    });
  }

  for (const answer of signals.insufficient) {
    test(`a right that is missing: ${answer.status} ${answer.challenge ?? textOf(answer)}`, () => {
      expect(judgeApiAnswer(profile, read(answer))).toBe('insufficient');
      expect(neededScopes(profile, read(answer))).toEqual(answer.scopes ?? []);
    });
  }

  for (const answer of signals.limited) {
    test(`too many requests: ${answer.status} ${textOf(answer)} ${JSON.stringify(answer.headers ?? {})}`, () => {
      expect(judgeApiAnswer(profile, read(answer))).toBe('limited');
      expect(waitMs(profile, new Headers(answer.headers), NOW)).toBe(answer.waitMs);
    });
  }

  for (const answer of signals.ok) {
    test(`a matter of the job: ${answer.status} ${textOf(answer)}`, () => {
      expect(judgeApiAnswer(profile, read(answer))).toBe('ok');
    });
  }

  test('a plain good answer and an outage', () => {
    expect(judgeApiAnswer(profile, { status: 200, challenge: '', body: '{"ok":true}' })).toBe('ok');
    const outage = judgeApiAnswer(profile, { status: 503, challenge: '', body: '<html>' });
    expect(outage).toBe(name === 'microsoft' ? 'limited' : 'unavailable');
  });
});

test('no answer that was recorded at GitHub is taken for a dead token, a missing right or a limit', () => {
  const folder = new URL('scenarios/api.github.com/', import.meta.resolve('@octokit/fixtures'));
  const profile = presetProfile('github');
  const judged = new Map<number, number>();
  for (const scenario of readdirSync(folder)) {
    const file = new URL(`${scenario}/normalized-fixture.json`, folder);
    const recorded = JSON.parse(readFileSync(file, 'utf8')) as { status: number; response: unknown }[];
    for (const { status, response } of recorded) {
      const body = typeof response === 'string' ? response : JSON.stringify(response);
      const verdict = judgeApiAnswer(profile, { status, challenge: '', body });
      expect(verdict, `${scenario} ${status}`).toBe('ok');
      judged.set(status, (judged.get(status) ?? 0) + 1);
    }
  }
  // Among them what a job must be told itself: nothing there, not accepted.
  expect([...judged.keys()]).toEqual(expect.arrayContaining([200, 404, 422]));
});
