/**
 * Every preset against answers as its provider is known to give them: the code exchange, the refresh, the end of a
 * grant. The answers are written down from the sources that the presets name.
 */
import nock from 'nock';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { inspect } from 'node:util';
import type { TokenSet } from '../../src/provider/token-set.ts';
import { PRESETS } from '../../src/provider/presets.ts';
import { mergeTokenSet } from '../../src/provider/token-set.ts';
import { secret } from '../../src/secret.ts';
import { presetProfile } from '../support/preset-profile.ts';
import { CLIENT_ID, CLIENT_SECRET, NOW, openReplayed } from '../support/preset-provider.ts';

beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

interface Answer {
  readonly status?: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
}

interface Case {
  /** The answer to the code, beside what `expects` says of it. */
  readonly code: Answer;
  readonly expects?: {
    scopes?: string[];
    seconds?: number;
    captured?: Record<string, string>;
    refresh?: false;
  };
  /** The answer to the refresh token; providers without one have none. */
  readonly refreshed?: Answer;
  /** Whether the refresh brings a new refresh token. */
  readonly rotates?: boolean;
  /** How the provider says that a refresh token is over. */
  readonly dead?: Answer;
  /** Query of the authorization response, beside code and state. */
  readonly response?: Record<string, string>;
  readonly sends: 'post' | 'basic';
  readonly as?: 'json';
}

const usual = (more: Record<string, unknown> = {}): Answer => ({
  body: {
    access_token: 'canary-at-1',
    token_type: 'Bearer',
    expires_in: 3600,
    refresh_token: 'canary-rt-1',
    ...more,
  },
});
const renewed = (more: Record<string, unknown> = {}): Answer => ({
  body: {
    access_token: 'canary-at-2',
    token_type: 'Bearer',
    expires_in: 3600,
    refresh_token: 'canary-rt-2',
    ...more,
  },
});
const kept: Answer = { body: { access_token: 'canary-at-2', token_type: 'bearer', expires_in: 3600 } };
const over = (status = 400, error = 'invalid_grant', more: Record<string, unknown> = {}): Answer => ({
  status,
  body: { error, error_description: 'the token canary-rt-1 is no good', ...more },
});
const doorkeeper = { 'www-authenticate': 'Bearer realm="Doorkeeper", error="invalid_grant"' };

const CASES: Record<string, Case> = {
  github: {
    code: { body: { access_token: 'canary-at-1', scope: 'repo,read:org', token_type: 'bearer' } },
    expects: { scopes: ['repo', 'read:org'], refresh: false },
    sends: 'post',
  },
  'github-app': {
    code: usual({
      scope: '',
      expires_in: '28800',
      refresh_token_expires_in: '15811200',
      token_type: 'bearer',
    }),
    expects: { seconds: 28_800 },
    refreshed: {
      body: 'access_token=canary-at-2&expires_in=28800&refresh_token=canary-rt-2&scope=&token_type=bearer',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    },
    rotates: true,
    dead: over(200, 'bad_refresh_token'),
    sends: 'post',
  },
  gitlab: {
    code: usual({ token_type: 'bearer', created_at: 1_796_083_200 }),
    refreshed: renewed(),
    rotates: true,
    dead: { ...over(), headers: doorkeeper },
    sends: 'post',
  },
  google: {
    code: usual({
      scope: 'openid https://www.googleapis.com/auth/drive.readonly',
      id_token: 'not.looked.at',
    }),
    expects: { scopes: ['openid', 'https://www.googleapis.com/auth/drive.readonly'] },
    refreshed: { body: { ...(kept.body as object), id_token: 'not.looked.at' } },
    rotates: false,
    dead: over(),
    sends: 'post',
  },
  microsoft: {
    code: usual({ ext_expires_in: 3600, scope: 'User.Read Files.Read', id_token: 'not.looked.at' }),
    expects: { scopes: ['User.Read', 'Files.Read'] },
    refreshed: renewed({ ext_expires_in: 3600 }),
    rotates: true,
    dead: over(400, 'invalid_grant', { error_codes: [700082], suberror: 'bad_token' }),
    sends: 'post',
  },
  slack: {
    code: {
      body: {
        ok: true,
        access_token: 'canary-bot',
        token_type: 'bot',
        team: { id: 'T1', name: 'Acme' },
        enterprise: null,
        authed_user: {
          id: 'U1',
          scope: 'search:read,users:read',
          access_token: 'canary-at-1',
          token_type: 'user',
          expires_in: 43200,
          refresh_token: 'canary-rt-1',
        },
      },
    },
    expects: { scopes: ['search:read', 'users:read'], seconds: 43_200, captured: { 'team.id': 'T1' } },
    refreshed: renewed({ ok: true, token_type: 'user', expires_in: 43200, team: { id: 'T1' } }),
    rotates: true,
    dead: { body: { ok: false, error: 'invalid_refresh_token' } },
    sends: 'post',
  },
  notion: {
    code: {
      body: {
        access_token: 'canary-at-1',
        token_type: 'bearer',
        refresh_token: 'canary-rt-1',
        bot_id: 'b-1',
        workspace_id: 'w-1',
        workspace_icon: null,
        duplicated_template_id: null,
        owner: { type: 'user' },
      },
    },
    expects: { captured: { bot_id: 'b-1', workspace_id: 'w-1' } },
    refreshed: renewed({ expires_in: undefined, bot_id: 'b-1', workspace_id: 'w-1' }),
    rotates: true,
    dead: over(400, 'invalid_grant'),
    sends: 'basic',
    as: 'json',
  },
  atlassian: {
    code: usual({ scope: 'read:jira-work offline_access' }),
    refreshed: renewed(),
    rotates: true,
    dead: over(403, 'unauthorized_client'),
    sends: 'post',
    as: 'json',
  },
  linear: {
    code: usual({ expires_in: 86399, scope: 'read write' }),
    expects: { seconds: 86_399, scopes: ['read', 'write'] },
    refreshed: renewed(),
    rotates: true,
    dead: over(),
    sends: 'post',
  },
  asana: {
    code: usual({ data: { id: 4673218951, name: 'Alice', email: 'alice@example.com' } }),
    refreshed: kept,
    rotates: false,
    dead: over(),
    sends: 'post',
  },
  hubspot: {
    code: usual({
      expires_in: 1800,
      hub_id: 62515,
      user_id: 123,
      scopes: ['oauth', 'crm.objects.contacts.read'],
    }),
    expects: {
      seconds: 1_800,
      scopes: ['oauth', 'crm.objects.contacts.read'],
      captured: { hub_id: '62515', user_id: '123' },
    },
    refreshed: renewed({ expires_in: 1800 }),
    rotates: true,
    dead: { status: 400, body: { status: 'BAD_REFRESH_TOKEN', message: 'missing or unknown refresh token' } },
    sends: 'post',
  },
  salesforce: {
    code: usual({
      expires_in: undefined,
      instance_url: 'https://acme.my.salesforce.com',
      id: 'https://login.salesforce.com/id/00D/005',
      issued_at: '1796083200000',
      signature: 'x',
      scope: 'refresh_token api openid',
    }),
    expects: { captured: { instance_url: 'https://acme.my.salesforce.com' } },
    refreshed: { body: { access_token: 'canary-at-2', token_type: 'Bearer', issued_at: '1796083200000' } },
    rotates: false,
    dead: over(400, 'invalid_grant', { error_description: 'expired access/refresh token' }),
    sends: 'post',
  },
  zendesk: {
    code: usual({ expires_in: 1800, refresh_token_expires_in: 2_592_000, scope: 'read' }),
    expects: { seconds: 1_800 },
    refreshed: renewed({ expires_in: 1800 }),
    rotates: true,
    dead: over(),
    sends: 'post',
  },
  dropbox: {
    code: usual({
      expires_in: 14400,
      uid: '1',
      account_id: 'dbid:1',
      scope: 'account_info.read files.content.read',
    }),
    expects: { seconds: 14_400, captured: { account_id: 'dbid:1' } },
    refreshed: kept,
    rotates: false,
    dead: over(),
    sends: 'post',
  },
  box: {
    code: usual({ restricted_to: [], issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }),
    refreshed: renewed({ restricted_to: [] }),
    rotates: true,
    dead: over(),
    sends: 'post',
  },
  zoom: {
    code: usual({ scope: 'user:read meeting:read', api_url: 'https://api.zoom.us' }),
    refreshed: renewed(),
    rotates: true,
    dead: { status: 400, body: { reason: 'Invalid Token!', error: 'invalid_request' } },
    sends: 'basic',
  },
  airtable: {
    code: usual({ refresh_expires_in: 5_184_000, scope: 'data.records:read schema.bases:read' }),
    expects: { scopes: ['data.records:read', 'schema.bases:read'] },
    refreshed: renewed({ refresh_expires_in: 5_184_000 }),
    rotates: true,
    dead: over(401),
    sends: 'basic',
  },
  figma: {
    code: usual({ expires_in: 7_776_000, user_id: 1, user_id_string: '1' }),
    expects: { seconds: 7_776_000 },
    refreshed: { body: { access_token: 'canary-at-2', expires_in: 7_776_000 } },
    rotates: false,
    sends: 'basic',
  },
  discord: {
    code: usual({ expires_in: 604800, scope: 'identify guilds' }),
    expects: { seconds: 604_800, captured: { guild_id: '42' } },
    response: { guild_id: '42', permissions: '8' },
    refreshed: renewed({ expires_in: 604800 }),
    rotates: true,
    dead: over(400, 'invalid_request', { error_description: 'Invalid "refresh_token" in request.' }),
    sends: 'post',
  },
  spotify: {
    code: usual({ scope: 'user-read-private' }),
    refreshed: kept,
    rotates: false,
    dead: over(),
    sends: 'basic',
  },
  stripe: {
    code: {
      body: {
        access_token: 'canary-at-1',
        token_type: 'bearer',
        refresh_token: 'canary-rt-1',
        scope: 'read_only',
        livemode: false,
        stripe_user_id: 'acct_1',
        stripe_publishable_key: 'pk_1',
      },
    },
    expects: { scopes: ['read_only'], captured: { stripe_user_id: 'acct_1' } },
    refreshed: renewed({ expires_in: undefined }),
    rotates: true,
    dead: over(),
    sends: 'post',
  },
  shopify: {
    code: {
      body: {
        access_token: 'canary-at-1',
        scope: 'read_products,read_orders',
        expires_in: 3600,
        refresh_token: 'canary-rt-1',
        refresh_token_expires_in: 7_776_000,
      },
    },
    expects: { scopes: ['read_products', 'read_orders'], seconds: 3_600 },
    refreshed: renewed({ token_type: undefined, scope: 'read_products,read_orders' }),
    rotates: true,
    dead: over(),
    sends: 'post',
    as: 'json',
  },
  quickbooks: {
    code: usual({ x_refresh_token_expires_in: 8_726_400, token_type: 'bearer', id_token: 'not.looked.at' }),
    expects: { captured: { realmId: '9341' } },
    response: { realmId: '9341' },
    refreshed: renewed({ x_refresh_token_expires_in: 8_726_400 }),
    rotates: true,
    dead: { status: 400, body: { error: 'invalid_grant' } },
    sends: 'basic',
  },
  xero: {
    code: usual({
      expires_in: 1800,
      scope: 'openid accounting.contacts offline_access',
      id_token: 'not.looked.at',
    }),
    expects: { seconds: 1_800 },
    response: { session_state: 'x' },
    refreshed: renewed({ expires_in: 1800 }),
    rotates: true,
    dead: over(),
    sends: 'basic',
  },
  calendly: {
    code: usual({
      expires_in: 7200,
      created_at: 1_796_083_200,
      owner: 'https://api.calendly.com/users/A',
      organization: 'https://api.calendly.com/organizations/B',
    }),
    expects: { seconds: 7_200, captured: { organization: 'https://api.calendly.com/organizations/B' } },
    refreshed: renewed({ expires_in: 7200 }),
    rotates: true,
    dead: over(),
    sends: 'basic',
  },
};

interface Sent {
  readonly fields: Record<string, string>;
  readonly headers: Record<string, string>;
}

/** Answers one request at an endpoint and shows what was sent. */
function replay(endpoint: string, { status = 200, body, headers = {} }: Answer): { sent: Sent[] } {
  const sent: Sent[] = [];
  const url = new URL(endpoint);
  nock(url.origin)
    .post(url.pathname)
    .reply(async (request: Request) => {
      const raw = await request.text();
      const asJson = request.headers.get('content-type')?.includes('json') === true;
      const fields = asJson ? (JSON.parse(raw) as object) : Object.fromEntries(new URLSearchParams(raw));
      sent.push({ fields: fields as Record<string, string>, headers: Object.fromEntries(request.headers) });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return [status, text, { 'content-type': 'application/json', ...headers }];
    });
  return { sent };
}

function checkClient({ fields, headers }: Sent, { sends, as }: Case): void {
  expect(headers['content-type']).toContain(
    as === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
  );
  if (sends === 'post') {
    expect(fields).toMatchObject({ client_id: CLIENT_ID, client_secret: CLIENT_SECRET });
    expect(headers['authorization']).toBeUndefined();
  } else {
    const text = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64');
    expect(headers['authorization']).toBe(`Basic ${text}`);
    expect(fields['client_secret']).toBeUndefined();
  }
}

const old: TokenSet = {
  accessToken: secret('canary-at-1'),
  refreshToken: secret('canary-rt-1'),
  scopes: ['kept'],
  captured: { instance_url: 'https://acme.my.salesforce.com' },
};

test('every preset has a case', () => {
  expect(Object.keys(CASES).toSorted()).toEqual(Object.keys(PRESETS).toSorted());
});

describe.each(Object.entries(CASES))('%s', (name, one) => {
  const profile = presetProfile(name);
  const tokenEndpoint = profile.tokenEndpoint ?? '';
  const refreshEndpoint = profile.refreshEndpoint ?? tokenEndpoint;

  function exchange() {
    return openReplayed(profile).provider.exchange({
      code: secret('canary-code/+=1'),
      codeVerifier: secret('canary-verifier-0123456789012345678901234567890123'),
      redirectUri: 'https://keyturn.example/callback/one',
      nonce: undefined,
      params: new URLSearchParams({ code: 'c', state: 's', ...one.response }),
      tenant: {},
    });
  }

  test('a code becomes a token set', async () => {
    const { sent } = replay(tokenEndpoint, one.code);
    const tokens = await exchange();
    expect(tokens.accessToken.reveal()).toBe('canary-at-1');
    expect(tokens.refreshToken?.reveal()).toBe(one.expects?.refresh === false ? undefined : 'canary-rt-1');
    if (one.expects?.scopes !== undefined) expect(tokens.scopes).toEqual(one.expects.scopes);
    if (one.expects?.seconds !== undefined)
      expect(tokens.expiresAtMs).toBe(NOW + one.expects.seconds * 1_000);
    expect(tokens.captured).toEqual(one.expects?.captured ?? {});
    expect(sent).toHaveLength(1);
    expect(sent[0]?.fields).toMatchObject({
      grant_type: 'authorization_code',
      code: 'canary-code/+=1',
      code_verifier: 'canary-verifier-0123456789012345678901234567890123',
      redirect_uri: 'https://keyturn.example/callback/one',
      ...profile.tokenParameters,
    });
    if (sent[0] !== undefined) checkClient(sent[0], one);
  });

  if (one.refreshed !== undefined)
    test('a refresh token becomes a new token set', async () => {
      const { sent } = replay(refreshEndpoint, one.refreshed ?? { body: {} });
      const answer = await openReplayed(profile).provider.refresh(old, { scopes: ['kept'] });
      const merged = mergeTokenSet(old, answer);
      expect(merged.accessToken.reveal()).toBe('canary-at-2');
      expect(merged.refreshToken?.reveal()).toBe(one.rotates === true ? 'canary-rt-2' : 'canary-rt-1');
      expect(merged.captured['instance_url']).toBe('https://acme.my.salesforce.com');
      expect(sent[0]?.fields).toMatchObject({ grant_type: 'refresh_token', refresh_token: 'canary-rt-1' });
      expect(sent[0]?.fields['scope']).toBeUndefined();
      if (sent[0] !== undefined) checkClient(sent[0], one);
    });

  if (one.dead !== undefined)
    test('a refresh token that is over is a dead grant, told without its text', async () => {
      replay(refreshEndpoint, one.dead ?? { body: {} });
      const error: unknown = await openReplayed(profile)
        .provider.refresh(old, { scopes: [] })
        .catch((caught: unknown) => caught);
      expect(error).toMatchObject({ reason: 'grant_dead', facts: { sent: true } });
      expect(inspect(error, { depth: Infinity, showHidden: true })).not.toMatch(
        /canary|no good|Invalid Token|in request/,
      );
    });

  test.each<[string, Answer, Record<string, unknown>]>([
    ['502 with a page', { status: 502, body: '<html>canary</html>' }, { reason: 'provider_unavailable' }],
    [
      '429',
      { status: 429, body: { error: 'rate_limited' }, headers: { 'retry-after': '30' } },
      { reason: 'provider_unavailable', facts: { retryAfterMs: 30_000, status: 429, sent: true } },
    ],
    ['500 that speaks of a dead grant', over(500), { reason: 'provider_unavailable' }],
    ['a wrong client secret', over(401, 'invalid_client'), { reason: 'provider_misconfigured' }],
    ['an empty object', { body: {} }, { reason: 'answer_malformed' }],
    [
      'a redirect',
      { status: 302, body: '', headers: { location: 'https://elsewhere.example/' } },
      { reason: 'answer_malformed' },
    ],
  ])('%s means the same for a code and for a refresh token', async (_, answer, expected) => {
    const errors: unknown[] = [];
    replay(tokenEndpoint, answer);
    errors.push(await exchange().catch((caught: unknown) => caught));
    nock.cleanAll();
    replay(refreshEndpoint, answer);
    const { provider } = openReplayed(profile);
    errors.push(await provider.refresh(old, { scopes: [] }).catch((caught: unknown) => caught));
    for (const error of errors) {
      expect(error).toMatchObject(expected);
      expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
    }
  });
});
