/**
 * What each preset sends, to the letter: where the person is led, and what is posted for a code and for a refresh
 * token. The addresses and parameters are written down here again, from the providers' own pages, so that a preset
 * cannot change without being noticed.
 */
import nock from 'nock';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { PRESETS } from '../../src/provider/presets.ts';
import type { Profile } from '../../src/provider/profile.ts';
import { secret } from '../../src/secret.ts';
import { CLIENT_ID, CLIENT_SECRET, openReplayed, REDIRECT_URI } from '../support/preset-provider.ts';

beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

interface Expected {
  readonly tenant?: Record<string, string>;
  readonly authorize: string;
  /** Parameters of the authorization request beside the ones that every request has. */
  readonly asks?: Record<string, string>;
  /** Parameters added when the person must be asked again. */
  readonly asksAgain?: Record<string, string>;
  readonly token: string;
  readonly refreshAt?: string;
  readonly client: 'post' | 'basic';
  readonly json?: true;
  /** Fields beside the usual ones. */
  readonly withCode?: Record<string, string>;
  readonly withRefresh?: Record<string, string>;
}

const scope = (value: string) => ({ scope: value });

const EXPECTED: Record<string, Expected> = {
  airtable: {
    authorize: 'https://airtable.com/oauth2/v1/authorize',
    asks: scope('one two'),
    token: 'https://airtable.com/oauth2/v1/token',
    client: 'basic',
  },
  asana: {
    authorize: 'https://app.asana.com/-/oauth_authorize',
    asks: scope('one two'),
    token: 'https://app.asana.com/-/oauth_token',
    client: 'post',
    withRefresh: { redirect_uri: REDIRECT_URI },
  },
  atlassian: {
    authorize: 'https://auth.atlassian.com/authorize',
    asks: {
      ...scope('offline_access read:me one two'),
      audience: 'api.atlassian.com',
      prompt: 'consent',
    },
    token: 'https://auth.atlassian.com/oauth/token',
    client: 'post',
    json: true,
  },
  box: {
    authorize: 'https://account.box.com/api/oauth2/authorize',
    asks: scope('one two'),
    token: 'https://api.box.com/oauth2/token',
    client: 'post',
  },
  calendly: {
    authorize: 'https://auth.calendly.com/oauth/authorize',
    asks: scope('one two'),
    token: 'https://auth.calendly.com/oauth/token',
    client: 'basic',
  },
  discord: {
    authorize: 'https://discord.com/oauth2/authorize',
    asks: scope('identify one two'),
    asksAgain: { prompt: 'consent' },
    token: 'https://discord.com/api/oauth2/token',
    client: 'post',
  },
  dropbox: {
    authorize: 'https://www.dropbox.com/oauth2/authorize',
    asks: { ...scope('account_info.read one two'), token_access_type: 'offline' },
    asksAgain: { force_reapprove: 'true' },
    token: 'https://api.dropboxapi.com/oauth2/token',
    client: 'post',
  },
  figma: {
    authorize: 'https://www.figma.com/oauth',
    asks: scope('current_user:read one two'),
    token: 'https://api.figma.com/v1/oauth/token',
    refreshAt: 'https://api.figma.com/v1/oauth/refresh',
    client: 'basic',
  },
  github: {
    authorize: 'https://github.com/login/oauth/authorize',
    asks: scope('one two'),
    asksAgain: { prompt: 'select_account' },
    token: 'https://github.com/login/oauth/access_token',
    client: 'post',
  },
  'github-app': {
    authorize: 'https://github.com/login/oauth/authorize',
    asks: scope('one two'),
    asksAgain: { prompt: 'select_account' },
    token: 'https://github.com/login/oauth/access_token',
    client: 'post',
  },
  gitlab: {
    tenant: { host: 'git.acme.example' },
    authorize: 'https://git.acme.example/oauth/authorize',
    asks: scope('read_user one two'),
    token: 'https://git.acme.example/oauth/token',
    client: 'post',
    withRefresh: { redirect_uri: REDIRECT_URI },
  },
  google: {
    authorize: 'https://accounts.google.com/o/oauth2/v2/auth',
    asks: { ...scope('openid one two'), access_type: 'offline', include_granted_scopes: 'true' },
    asksAgain: { prompt: 'consent' },
    token: 'https://oauth2.googleapis.com/token',
    client: 'post',
  },
  hubspot: {
    authorize: 'https://app.hubspot.com/oauth/authorize',
    asks: scope('oauth one two'),
    token: 'https://api.hubapi.com/oauth/2026-03/token',
    client: 'post',
  },
  linear: {
    authorize: 'https://linear.app/oauth/authorize',
    asks: scope('read,one,two'),
    asksAgain: { prompt: 'consent' },
    token: 'https://api.linear.app/oauth/token',
    client: 'post',
  },
  microsoft: {
    tenant: { tenant: '9188040d-6c67-4c5b-b112-36a304b66dad' },
    authorize: 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/oauth2/v2.0/authorize',
    asks: { ...scope('offline_access openid one two'), response_mode: 'query' },
    asksAgain: { prompt: 'select_account' },
    token: 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/oauth2/v2.0/token',
    client: 'post',
  },
  notion: {
    authorize: 'https://api.notion.com/v1/oauth/authorize',
    asks: { ...scope('one two'), owner: 'user' },
    token: 'https://api.notion.com/v1/oauth/token',
    client: 'basic',
    json: true,
  },
  quickbooks: {
    authorize: 'https://appcenter.intuit.com/connect/oauth2',
    asks: scope('openid one two'),
    token: 'https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer',
    client: 'basic',
  },
  salesforce: {
    tenant: { domain: 'acme.my.salesforce.com' },
    authorize: 'https://acme.my.salesforce.com/services/oauth2/authorize',
    asks: scope('refresh_token openid one two'),
    asksAgain: { prompt: 'consent' },
    token: 'https://acme.my.salesforce.com/services/oauth2/token',
    client: 'post',
  },
  shopify: {
    tenant: { shop: 'acme' },
    authorize: 'https://acme.myshopify.com/admin/oauth/authorize',
    asks: scope('one,two'),
    token: 'https://acme.myshopify.com/admin/oauth/access_token',
    client: 'post',
    json: true,
    withCode: { expiring: '1' },
  },
  slack: {
    authorize: 'https://slack.com/oauth/v2/authorize',
    asks: { user_scope: 'one,two' },
    token: 'https://slack.com/api/oauth.v2.access',
    client: 'post',
  },
  spotify: {
    authorize: 'https://accounts.spotify.com/authorize',
    asks: scope('one two'),
    asksAgain: { show_dialog: 'true' },
    token: 'https://accounts.spotify.com/api/token',
    client: 'basic',
  },
  stripe: {
    authorize: 'https://connect.stripe.com/oauth/authorize',
    asks: scope('one two'),
    asksAgain: { always_prompt: 'true' },
    token: 'https://connect.stripe.com/oauth/token',
    client: 'post',
  },
  xero: {
    authorize: 'https://login.xero.com/identity/connect/authorize',
    asks: scope('offline_access openid one two'),
    token: 'https://identity.xero.com/connect/token',
    client: 'basic',
  },
  zendesk: {
    tenant: { subdomain: 'acme' },
    authorize: 'https://acme.zendesk.com/oauth/authorizations/new',
    asks: scope('one two'),
    token: 'https://acme.zendesk.com/oauth/tokens',
    client: 'post',
  },
  zoom: {
    authorize: 'https://zoom.us/oauth/authorize',
    asks: scope('one two'),
    token: 'https://zoom.us/oauth/token',
    client: 'basic',
  },
};

const VERIFIER = 'verifier-0123456789012345678901234567890123456';

/** A whole configuration with nothing but this preset in it. */
function configured(preset: string, tenant: Record<string, string> = {}): Profile {
  const config = readConfig({
    name: 'Acme',
    publicUrl: 'https://keyturn.example',
    issuer: { url: 'https://login.acme.example', client: { id: 'keyturn' } },
    providers: { one: { preset, clientId: CLIENT_ID, clientSecret: { env: 'ONE_SECRET' }, tenant } },
  });
  return (config.providers['one'] as { profile: Profile }).profile;
}

interface Posted {
  readonly accept: string | null;
  readonly authorization: string | null;
  readonly contentType: string;
  readonly fields: unknown;
}

/** Answers with tokens at one address only, and keeps what was posted there. */
function expectPost(address: string, answer: unknown): Posted[] {
  const posted: Posted[] = [];
  const url = new URL(address);
  nock(url.origin)
    .post(url.pathname)
    .reply(async (request: Request) => {
      const raw = await request.text();
      const contentType = (request.headers.get('content-type') ?? '').split(';')[0] ?? '';
      posted.push({
        accept: request.headers.get('accept'),
        authorization: request.headers.get('authorization'),
        contentType,
        fields: contentType.endsWith('json')
          ? (JSON.parse(raw) as unknown)
          : Object.fromEntries(new URLSearchParams(raw)),
      });
      return [200, answer as object];
    });
  return posted;
}

function asPosted(expected: Expected, fields: Record<string, string>): Posted {
  const basic = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64');
  const byPost = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET };
  return {
    accept: 'application/json',
    authorization: expected.client === 'basic' ? `Basic ${basic}` : null,
    contentType: expected.json === true ? 'application/json' : 'application/x-www-form-urlencoded',
    fields: { ...fields, ...(expected.client === 'post' ? byPost : {}) },
  };
}

/** An answer that every preset can read; Slack's code exchange nests what its refresh does not. */
const tokens = { access_token: 'at-1', token_type: 'user', refresh_token: 'rt-1', expires_in: 60 };
const answered = { ok: true, ...tokens, authed_user: tokens };

test('every preset is looked at', () => {
  expect(Object.keys(EXPECTED).toSorted()).toEqual(Object.keys(PRESETS).toSorted());
});

describe.each(Object.entries(EXPECTED))('%s', (name, expected) => {
  const profile = configured(name, expected.tenant);

  test.each([false, true])('leads the person to its own page (asked again: %s)', async (forceConsent) => {
    const url = await openReplayed(profile).provider.authorizationRequest({
      state: 'state-1',
      codeChallenge: 'challenge-1',
      redirectUri: REDIRECT_URI,
      scopes: ['one', 'two'],
      forceConsent,
      tenant: {},
    });
    expect(url.origin + url.pathname).toBe(expected.authorize);
    const parameters = [...url.searchParams];
    expect(new Set(parameters.map(([one]) => one)).size).toBe(parameters.length);
    expect(Object.fromEntries(parameters)).toEqual({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      state: 'state-1',
      code_challenge: 'challenge-1',
      code_challenge_method: 'S256',
      ...expected.asks,
      ...(forceConsent ? expected.asksAgain : {}),
    });
  });

  test('posts a code with its verifier, and nothing that is not asked for', async () => {
    const posted = expectPost(expected.token, answered);
    const { provider } = openReplayed(profile);
    const got = await provider.exchange({
      code: secret('code-1'),
      codeVerifier: secret(VERIFIER),
      redirectUri: REDIRECT_URI,
      nonce: undefined,
      params: new URLSearchParams({ code: 'code-1', state: 'state-1' }),
      tenant: {},
    });
    expect(got.accessToken.reveal()).toBe('at-1');
    expect(posted).toEqual([
      asPosted(expected, {
        grant_type: 'authorization_code',
        code: 'code-1',
        code_verifier: VERIFIER,
        redirect_uri: REDIRECT_URI,
        ...expected.withCode,
      }),
    ]);
  });

  test('posts a refresh token where it is redeemed, and asks for no scope', async () => {
    const posted = expectPost(expected.refreshAt ?? expected.token, answered);
    const { provider } = openReplayed(profile);
    const old = { accessToken: secret('at-0'), refreshToken: secret('rt-0'), captured: {} };
    const got = await provider.refresh(old, { scopes: ['one'] });
    expect(got.accessToken.reveal()).toBe('at-1');
    expect(posted).toEqual([
      asPosted(expected, { grant_type: 'refresh_token', refresh_token: 'rt-0', ...expected.withRefresh }),
    ]);
  });
});

describe.each(Object.entries(EXPECTED).filter(([, { tenant }]) => tenant !== undefined))(
  'a tenant of %s',
  (name, { tenant = {} }) => {
    const [key = ''] = Object.keys(tenant);

    test.each(['acme.example/evil', 'evil.example#', 'user@evil.example', 'a:8443', 'a b', ''])(
      'is not %j, which would lead elsewhere',
      (value) => {
        expect(() => configured(name, { [key]: value })).toThrow(
          expect.objectContaining({ reason: 'configuration_invalid' }),
        );
      },
    );
  },
);
