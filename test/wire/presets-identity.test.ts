/**
 * Whose tokens they are, and their end, at each preset: the exact request and what is made of the answer. The
 * answers have the form that the providers' own references show.
 */
import nock from 'nock';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PRESETS } from '../../src/provider/presets.ts';
import type { TokenSet } from '../../src/provider/token-set.ts';
import { secret } from '../../src/secret.ts';
import { presetProfile } from '../support/preset-profile.ts';
import { CLIENT_ID, CLIENT_SECRET, openReplayed } from '../support/preset-provider.ts';

beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

const AT = 'canary-at-1';
const RT = 'canary-rt-1';
const basic = `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')}`;
const post = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET };
const refreshToken = { token: RT, token_type_hint: 'refresh_token' };

interface Revocation {
  readonly method?: 'DELETE';
  readonly at: string;
  readonly authorization?: string;
  /** Fields of the form or the JSON body; null for none. */
  readonly body: Record<string, string> | null;
  readonly ends: 'token' | 'grant';
}

interface Expected {
  readonly captured?: Record<string, string>;
  readonly method?: 'POST';
  readonly ask: string;
  readonly headers?: Record<string, string>;
  readonly answer: object;
  readonly subject: string;
  readonly label?: string;
  readonly revocation?: Revocation;
}

const github: Expected = {
  ask: 'https://api.github.com/user',
  headers: { 'x-github-api-version': '2022-11-28' },
  answer: { id: 583231, login: 'alice', node_id: 'x' },
  subject: '583231',
  label: 'alice',
  revocation: {
    method: 'DELETE',
    at: `https://api.github.com/applications/${CLIENT_ID}/token`,
    authorization: basic,
    body: { access_token: AT },
    ends: 'token',
  },
};

const EXPECTED: Record<string, Expected> = {
  airtable: {
    ask: 'https://api.airtable.com/v0/meta/whoami',
    answer: { id: 'usr1', email: 'alice@acme.example' },
    subject: 'usr1',
    label: 'alice@acme.example',
  },
  asana: {
    ask: 'https://app.asana.com/api/1.0/users/me',
    answer: { data: { gid: '12', name: 'Alice', email: 'alice@acme.example' } },
    subject: '12',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://app.asana.com/-/oauth_revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  atlassian: {
    ask: 'https://api.atlassian.com/me',
    answer: { account_id: '5b:1', email: 'alice@acme.example' },
    subject: '5b:1',
    label: 'alice@acme.example',
  },
  box: {
    ask: 'https://api.box.com/2.0/users/me',
    answer: { type: 'user', id: '11446498', login: 'alice@acme.example' },
    subject: '11446498',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://api.box.com/oauth2/revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  calendly: {
    ask: 'https://api.calendly.com/users/me',
    answer: { resource: { uri: 'https://api.calendly.com/users/A', email: 'alice@acme.example' } },
    subject: 'https://api.calendly.com/users/A',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://auth.calendly.com/oauth/revoke',
      authorization: basic,
      body: refreshToken,
      ends: 'grant',
    },
  },
  discord: {
    ask: 'https://discord.com/api/users/@me',
    answer: { id: '80351110224678912', username: 'alice' },
    subject: '80351110224678912',
    label: 'alice',
    revocation: {
      at: 'https://discord.com/api/oauth2/token/revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  dropbox: {
    method: 'POST',
    ask: 'https://api.dropboxapi.com/2/users/get_current_account',
    answer: { account_id: 'dbid:1', email: 'alice@acme.example' },
    subject: 'dbid:1',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://api.dropboxapi.com/2/auth/token/revoke',
      authorization: `Bearer ${AT}`,
      body: null,
      ends: 'grant',
    },
  },
  figma: {
    ask: 'https://api.figma.com/v1/me',
    answer: { id: '1', handle: 'Alice', email: 'alice@acme.example' },
    subject: '1',
    label: 'alice@acme.example',
  },
  github,
  'github-app': github,
  gitlab: {
    ask: 'https://gitlab.com/api/v4/user',
    answer: { id: 7, username: 'alice' },
    subject: '7',
    label: 'alice',
    revocation: {
      at: 'https://gitlab.com/oauth/revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  google: {
    ask: 'https://openidconnect.googleapis.com/v1/userinfo',
    answer: { sub: '1100', email: 'alice@acme.example' },
    subject: '1100',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://oauth2.googleapis.com/revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  hubspot: {
    captured: { hub_id: '62515', user_id: '123' },
    ask: 'https://api.hubapi.com/account-info/v3/details',
    answer: { portalId: 62515 },
    subject: '62515:123',
  },
  linear: {
    method: 'POST',
    ask: 'https://api.linear.app/graphql',
    answer: { data: { viewer: { id: 'u-1', email: 'alice@acme.example' } } },
    subject: 'u-1',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://api.linear.app/oauth/revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  microsoft: {
    ask: 'https://graph.microsoft.com/oidc/userinfo',
    answer: { sub: 'abc', email: 'alice@acme.example' },
    subject: 'abc',
    label: 'alice@acme.example',
  },
  notion: {
    ask: 'https://api.notion.com/v1/users/me',
    headers: { 'notion-version': '2022-06-28' },
    answer: { type: 'bot', bot: { owner: { type: 'user', user: { id: 'n-1', name: 'Alice' } } } },
    subject: 'n-1',
    label: 'Alice',
    revocation: {
      at: 'https://api.notion.com/v1/oauth/revoke',
      authorization: basic,
      body: { token: AT },
      ends: 'grant',
    },
  },
  quickbooks: {
    ask: 'https://accounts.platform.intuit.com/v1/openid_connect/userinfo',
    answer: { sub: 'q-1', email: 'alice@acme.example' },
    subject: 'q-1',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://developer.api.intuit.com/v2/oauth2/tokens/revoke',
      authorization: basic,
      body: { token: RT },
      ends: 'grant',
    },
  },
  salesforce: {
    captured: { instance_url: 'https://acme.my.salesforce.com' },
    ask: 'https://acme.my.salesforce.com/services/oauth2/userinfo',
    answer: { user_id: '005', preferred_username: 'alice@acme.example' },
    subject: '005',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://login.salesforce.com/services/oauth2/revoke',
      body: { ...refreshToken, ...post },
      ends: 'grant',
    },
  },
  shopify: {
    ask: 'https://acme.myshopify.com/admin/api/2026-10/shop.json',
    headers: { 'x-shopify-access-token': AT, authorization: '' },
    answer: { shop: { id: 548380009, name: 'Acme' } },
    subject: '548380009',
    label: 'Acme',
  },
  slack: {
    ask: 'https://slack.com/api/auth.test',
    answer: { ok: true, team_id: 'T1', user_id: 'U1', user: 'alice' },
    subject: 'T1:U1',
    label: 'alice',
    revocation: {
      at: 'https://slack.com/api/auth.revoke',
      authorization: `Bearer ${AT}`,
      body: null,
      ends: 'grant',
    },
  },
  spotify: {
    ask: 'https://api.spotify.com/v1/me',
    answer: { id: 's-1', display_name: 'Alice' },
    subject: 's-1',
    label: 'Alice',
  },
  stripe: {
    ask: 'https://api.stripe.com/v1/account',
    answer: { id: 'acct_1', email: 'alice@acme.example' },
    subject: 'acct_1',
    label: 'alice@acme.example',
  },
  xero: {
    ask: 'https://identity.xero.com/connect/userinfo',
    answer: { sub: 'x-1', email: 'alice@acme.example' },
    subject: 'x-1',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://identity.xero.com/connect/revocation',
      authorization: basic,
      body: refreshToken,
      ends: 'grant',
    },
  },
  zendesk: {
    ask: 'https://acme.zendesk.com/api/v2/users/me.json',
    answer: { user: { id: 35436, email: 'alice@acme.example' } },
    subject: '35436',
    label: 'alice@acme.example',
    revocation: {
      method: 'DELETE',
      at: 'https://acme.zendesk.com/api/v2/oauth/tokens/current',
      authorization: `Bearer ${AT}`,
      body: null,
      ends: 'grant',
    },
  },
  zoom: {
    ask: 'https://api.zoom.us/v2/users/me',
    answer: { id: 'z-1', email: 'alice@acme.example' },
    subject: 'z-1',
    label: 'alice@acme.example',
    revocation: {
      at: 'https://zoom.us/oauth/revoke',
      authorization: basic,
      body: { token: AT, token_type_hint: 'access_token' },
      ends: 'grant',
    },
  },
};

/** Answers one request, and keeps it. */
function answerOnce(method: 'GET' | 'POST' | 'DELETE', address: string, status: number, body: object) {
  const seen: { headers: Headers; raw: string }[] = [];
  const url = new URL(address);
  nock(url.origin)
    .intercept(url.pathname, method)
    .reply(async (request: Request) => {
      seen.push({ headers: request.headers, raw: await request.text() });
      return [status, status === 204 ? '' : JSON.stringify(body)];
    });
  return seen;
}

test('every preset is looked at', () => {
  expect(Object.keys(EXPECTED).toSorted()).toEqual(Object.keys(PRESETS).toSorted());
});

describe.each(Object.entries(EXPECTED))('%s', (name, expected) => {
  const { provider } = openReplayed(presetProfile(name));
  const method = expected.method ?? 'GET';
  const tokens: TokenSet = {
    accessToken: secret(AT),
    refreshToken: secret(RT),
    captured: expected.captured ?? {},
  };

  test('says whose tokens they are', async () => {
    const seen = answerOnce(method, expected.ask, 200, expected.answer);
    const { subject, label } = expected;
    await expect(provider.identity(tokens)).resolves.toEqual({ subject, ...(label && { label }) });
    const [{ headers, raw } = { headers: new Headers(), raw: '' }] = seen;
    const wanted = { authorization: `Bearer ${AT}`, accept: 'application/json', ...expected.headers };
    for (const [header, value] of Object.entries(wanted)) expect(headers.get(header) ?? '').toBe(value);
    expect(headers.get('user-agent')).toBe('keyturn');
    expect(raw).not.toContain('canary');
  });

  test('never takes an answer about nobody for an account', async () => {
    answerOnce(method, expected.ask, 200, {});
    const own = { ...tokens, captured: name === 'hubspot' ? {} : tokens.captured };
    await expect(provider.identity(own)).rejects.toMatchObject({ reason: 'answer_malformed' });
  });

  test('tells a dead token from an outage', async () => {
    answerOnce(method, expected.ask, 401, {});
    await expect(provider.identity(tokens)).rejects.toMatchObject({ reason: 'grant_dead' });
    answerOnce(method, expected.ask, 503, {});
    await expect(provider.identity(tokens)).rejects.toMatchObject({ reason: 'provider_unavailable' });
  });

  const { revocation } = expected;
  if (revocation === undefined) {
    test('has no way to end tokens that we know of, and nobody is asked', async () => {
      await expect(provider.revoke(tokens)).resolves.toBe('unsupported');
    });
  } else {
    test('ends tokens in its own way', async () => {
      const as = revocation.method ?? 'POST';
      const seen = answerOnce(as, revocation.at, 200, { ok: true });
      await expect(provider.revoke(tokens)).resolves.toBe('revoked');
      const [{ headers, raw } = { headers: new Headers(), raw: '' }] = seen;
      expect(headers.get('authorization') ?? undefined).toBe(revocation.authorization);
      const isJson = headers.get('content-type')?.includes('json') === true;
      const fields: unknown = isJson ? JSON.parse(raw) : Object.fromEntries(new URLSearchParams(raw));
      expect(raw === '' ? null : fields).toEqual(revocation.body);
      expect(provider.revocationScope).toBe(revocation.ends);
    });

    test('does not say that tokens are ended when they are not', async () => {
      answerOnce(revocation.method ?? 'POST', revocation.at, 500, { text: `canary-text ${RT}` });
      const error: unknown = await provider.revoke(tokens).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ reason: 'provider_unavailable', facts: { status: 500, sent: true } });
      expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
    });
  }
});
