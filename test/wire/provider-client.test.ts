/** Our OAuth client against recorded answers: what it asks for, what it believes, whom it names. */
import nock from 'nock';
import { exportJWK, generateKeyPair, SignJWT, decodeJwt, decodeProtectedHeader } from 'jose';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openProvider } from '../../src/provider/client.ts';
import type { Profile, ProfileInput } from '../../src/provider/profile.ts';
import type { TokenSet } from '../../src/provider/token-set.ts';
import { secret } from '../../src/secret.ts';
import { plainProfile, presetProfile, readProfile } from '../support/preset-profile.ts';
import { CLIENT_ID, CLIENT_SECRET, NOW, openReplayed } from '../support/preset-provider.ts';

beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
  nock.enableNetConnect();
  nock.restore();
});

const tokens: TokenSet = {
  accessToken: secret('canary-at-1'),
  refreshToken: secret('canary-rt-1'),
  captured: {},
};

const ask = {
  state: 'state-1',
  codeChallenge: 'challenge-1',
  redirectUri: 'https://keyturn.example/callback/one',
  scopes: ['b', 'a', 'b'],
  forceConsent: false,
  tenant: {},
};

function redeem(profile: Profile, more: { nonce?: string; params?: URLSearchParams } = {}) {
  return openReplayed(profile).provider.exchange({
    code: secret('canary-code'),
    codeVerifier: secret('canary-verifier-0123456789012345678901234567890123'),
    redirectUri: ask.redirectUri,
    nonce: more.nonce,
    params: more.params ?? new URLSearchParams({ code: 'c', state: 's' }),
    tenant: {},
  });
}

async function caught(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.fail('it went through'),
    (error: unknown) => error,
  );
}

describe('an authorization request', () => {
  test('asks for a code with PKCE S256, state and every scope once', async () => {
    const url = await openReplayed(plainProfile()).provider.authorizationRequest(ask);
    expect(url.origin + url.pathname).toBe('https://plain.example/authorize');
    expect(Object.fromEntries(url.searchParams)).toEqual({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: ask.redirectUri,
      state: 'state-1',
      code_challenge: 'challenge-1',
      code_challenge_method: 'S256',
      scope: 'b a',
    });
  });

  test('uses the separator, parameter and extras of the profile', async () => {
    const slack = await openReplayed(presetProfile('slack')).provider.authorizationRequest(ask);
    expect(slack.searchParams.get('user_scope')).toBe('b,a');
    expect(slack.searchParams.has('scope')).toBe(false);
    const google = await openReplayed(presetProfile('google')).provider.authorizationRequest(ask);
    expect(google.searchParams.get('access_type')).toBe('offline');
    expect(google.searchParams.has('prompt')).toBe(false);
    expect(google.searchParams.get('scope')).toBe('openid b a');
  });

  test('forces the consent only when it is told to', async () => {
    const { provider } = openReplayed(presetProfile('google'));
    const url = await provider.authorizationRequest({ ...ask, forceConsent: true });
    expect(url.searchParams.get('prompt')).toBe('consent');
  });

  test('is pushed where the provider takes that, so that the browser carries a reference only', async () => {
    let pushed = new URLSearchParams();
    nock('https://plain.example')
      .post('/par')
      .reply(async (request: Request) => {
        pushed = new URLSearchParams(await request.text());
        return [201, { request_uri: 'urn:ietf:params:oauth:request_uri:1', expires_in: 60 }];
      });
    const profile = plainProfile({ parEndpoint: 'https://plain.example/par' });
    const url = await openReplayed(profile).provider.authorizationRequest(ask);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: CLIENT_ID,
      request_uri: 'urn:ietf:params:oauth:request_uri:1',
    });
    expect(pushed.get('code_challenge')).toBe('challenge-1');
    expect(pushed.get('client_secret')).toBe(CLIENT_SECRET);
  });

  test.each([
    [503, 'provider_unavailable'],
    [429, 'provider_unavailable'],
    [400, 'provider_misconfigured'],
    [200, 'provider_misconfigured'],
  ])('that is pushed and answered %i is the matter of whom it should be', async (status, reason) => {
    nock('https://plain.example')
      .post('/par')
      .reply(status, { error: 'invalid_request', error_description: 'canary' });
    const profile = plainProfile({ parEndpoint: 'https://plain.example/par' });
    const error = await caught(openReplayed(profile).provider.authorizationRequest(ask));
    expect(error).toMatchObject({ reason });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
  });

  test('names the resource, and so do the code exchange and the refresh (RFC 8707)', async () => {
    const profile = plainProfile({ resource: 'https://api.plain.example' });
    const url = await openReplayed(profile).provider.authorizationRequest(ask);
    expect(url.searchParams.get('resource')).toBe('https://api.plain.example');
    const bodies: string[] = [];
    nock('https://plain.example')
      .post('/token')
      .twice()
      .reply(async (request: Request) => {
        bodies.push(await request.text());
        return [200, { access_token: 'canary-at-1', token_type: 'bearer' }];
      });
    await redeem(profile);
    await openReplayed(profile).provider.refresh(tokens, { scopes: [] });
    for (const body of bodies)
      expect(new URLSearchParams(body).get('resource')).toBe('https://api.plain.example');
    expect(bodies).toHaveLength(2);
  });
});

describe('discovery', () => {
  const profile = (more: Partial<ProfileInput> = {}) =>
    readProfile({
      clientId: 'c',
      clientSecret: 's',
      profile: {
        displayName: 'Found',
        issuer: 'https://found.example',
        discovery: true,
        api: { origins: ['https://api.found.example'] },
        ...more,
      },
    });

  function publish(metadata: Record<string, unknown>) {
    return nock('https://found.example')
      .get('/.well-known/openid-configuration')
      .reply(200, {
        issuer: 'https://found.example',
        authorization_endpoint: 'https://found.example/authorize',
        token_endpoint: 'https://found.example/token',
        ...metadata,
      });
  }

  test('gives the endpoints, and is asked once', async () => {
    const scope = publish({});
    const { provider } = openReplayed(profile());
    for (let time = 0; time < 3; time += 1) {
      const url = await provider.authorizationRequest(ask);
      expect(url.origin + url.pathname).toBe('https://found.example/authorize');
    }
    expect(scope.isDone()).toBe(true);
  });

  test.each(['https://evil.example', 'https://found.example/'])(
    'with the issuer %s is not believed',
    async (issuer) => {
      publish({ issuer });
      const error = await caught(openReplayed(profile()).provider.authorizationRequest(ask));
      expect(error).toMatchObject({ reason: 'provider_misconfigured', facts: { problem: 'issuer' } });
    },
  );

  test('that promises iss makes a response without it a refusal', async () => {
    publish({ authorization_response_iss_parameter_supported: true });
    const { provider } = openReplayed(profile());
    const expected = { issuer: 'https://found.example' };
    await expect(
      provider.checkResponse(new URLSearchParams('code=c&state=s'), expected),
    ).rejects.toMatchObject({
      reason: 'issuer_mismatch',
    });
    const right = new URLSearchParams({ code: 'c', state: 's', iss: 'https://found.example' });
    await expect(provider.checkResponse(right, expected)).resolves.toEqual({ kind: 'code', code: 'c' });
  });

  test('that fails once is asked again', async () => {
    nock('https://found.example').get('/.well-known/openid-configuration').reply(503);
    const { provider } = openReplayed(profile());
    await expect(provider.authorizationRequest(ask)).rejects.toMatchObject({
      reason: 'provider_unavailable',
      facts: { sent: false },
    });
    publish({});
    await expect(provider.authorizationRequest(ask)).resolves.toBeInstanceOf(URL);
  });
});

describe('an ID token beside the access token', () => {
  const oidc = plainProfile({ oidc: true });

  async function idToken(claims: Record<string, string>): Promise<string> {
    const { privateKey } = await generateKeyPair('RS256');
    return new SignJWT({ nonce: 'nonce-1', ...claims })
      .setProtectedHeader({ alg: 'RS256' })
      .setIssuer(claims['iss'] ?? 'https://plain.example')
      .setAudience(claims['aud'] ?? CLIENT_ID)
      .setSubject('alice')
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
  }

  function answer(id_token: string | undefined): void {
    nock('https://plain.example')
      .post('/token')
      .reply(200, { access_token: 'canary-at-1', token_type: 'Bearer', id_token });
  }

  test('with the right nonce, issuer and audience lets the tokens through', async () => {
    answer(await idToken({}));
    const granted = await redeem(oidc, { nonce: 'nonce-1' });
    expect(granted.accessToken.reveal()).toBe('canary-at-1');
  });

  test.each<[string, Record<string, string>]>([
    ['another nonce', { nonce: 'nonce-2' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['another audience', { aud: 'another-client' }],
  ])('with %s spoils the whole answer', async (_, claims) => {
    answer(await idToken(claims));
    const error = await caught(redeem(oidc, { nonce: 'nonce-1' }));
    expect(error).toMatchObject({ reason: 'answer_malformed', facts: { sent: true } });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
  });

  test('that is missing spoils it as well', async () => {
    answer(undefined);
    expect(await caught(redeem(oidc, { nonce: 'nonce-1' }))).toMatchObject({ reason: 'answer_malformed' });
  });
});

describe('the proof of the client', () => {
  test('private_key_jwt signs for the issuer and for this client, with a short life', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    expect((await exportJWK(publicKey)).kty).toBe('EC');
    const profile = plainProfile({ clientAuthentication: 'none' });
    const egress = openReplayed(profile).egress;
    const provider = openProvider(
      {
        id: 'one',
        profile: { ...profile, clientAuthentication: 'private_key_jwt' },
        clientId: CLIENT_ID,
        clientSecret: null,
        clientKey: privateKey,
      },
      { egress, wallMs: () => NOW },
    );
    let body = new URLSearchParams();
    nock('https://plain.example')
      .post('/token')
      .reply(async (request: Request) => {
        body = new URLSearchParams(await request.text());
        return [200, { access_token: 'canary-at-2', token_type: 'bearer' }];
      });
    await provider.refresh(tokens, { scopes: [] });
    expect(body.get('client_assertion_type')).toBe('urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    const assertion = body.get('client_assertion') ?? '';
    expect(decodeProtectedHeader(assertion).alg).toBe('ES256');
    expect(decodeJwt(assertion)).toMatchObject({
      iss: CLIENT_ID,
      sub: CLIENT_ID,
      aud: 'https://plain.example',
    });
    expect(body.has('client_secret')).toBe(false);
  });

  test('none sends the client id alone', async () => {
    let body = new URLSearchParams();
    nock('https://plain.example')
      .post('/token')
      .reply(async (request: Request) => {
        body = new URLSearchParams(await request.text());
        return [200, { access_token: 'canary-at-2', token_type: 'bearer' }];
      });
    await openReplayed(plainProfile({ clientAuthentication: 'none' })).provider.refresh(tokens, {
      scopes: [],
    });
    expect(body.get('client_id')).toBe(CLIENT_ID);
    expect(body.has('client_secret')).toBe(false);
  });
});

describe('a token endpoint in trouble', () => {
  test('that resets the connection may have used the code: nothing is claimed', async () => {
    nock('https://plain.example')
      .post('/token')
      .replyWithError(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    expect(await caught(redeem(plainProfile()))).toMatchObject({
      reason: 'provider_unavailable',
      facts: { sent: true },
    });
  });

  test('that was never reached has used nothing', async () => {
    nock('https://plain.example')
      .post('/token')
      .replyWithError(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }));
    expect(await caught(redeem(plainProfile()))).toMatchObject({
      reason: 'provider_unavailable',
      facts: { sent: false },
    });
  });

  test('a refresh without a refresh token asks nobody', async () => {
    const { provider } = openReplayed(plainProfile());
    const error = await caught(provider.refresh({ accessToken: secret('a'), captured: {} }, { scopes: [] }));
    expect(error).toMatchObject({ reason: 'grant_dead' });
  });
});

describe('whose tokens they are', () => {
  test('is asked with the token, in the place that the profile names', async () => {
    nock('https://api.github.com', { reqheaders: { authorization: 'Bearer canary-at-1', 'user-agent': /./ } })
      .get('/user')
      .reply(200, { id: 583231, login: 'alice' });
    const { provider } = openReplayed(presetProfile('github'));
    await expect(provider.identity(tokens)).resolves.toEqual({ subject: '583231', label: 'alice' });
  });

  test('may be two ids together, where one is unique in its team only', async () => {
    nock('https://slack.com')
      .get('/api/auth.test')
      .reply(200, { ok: true, team_id: 'T1', user_id: 'U1', user: 'alice' });
    const { provider } = openReplayed(presetProfile('slack'));
    await expect(provider.identity(tokens)).resolves.toEqual({ subject: 'T1:U1', label: 'alice' });
  });

  test('may be asked by GraphQL', async () => {
    nock('https://api.linear.app')
      .post('/graphql', { query: '{ viewer { id email } }' })
      .reply(200, { data: { viewer: { id: 'u-1', email: 'alice@example.com' } } });
    const { provider } = openReplayed(presetProfile('linear'));
    await expect(provider.identity(tokens)).resolves.toEqual({ subject: 'u-1', label: 'alice@example.com' });
  });

  test('may be known from the sign-in, while a probe shows that the token lives', async () => {
    const { provider } = openReplayed(presetProfile('hubspot'));
    const own = { ...tokens, captured: { hub_id: '1', user_id: '2' } };
    nock('https://api.hubapi.com').get('/account-info/v3/details').reply(200, { portalId: 1 });
    await expect(provider.identity(own)).resolves.toEqual({ subject: '1:2' });
    nock('https://api.hubapi.com').get('/account-info/v3/details').reply(401, {});
    await expect(provider.identity(own)).rejects.toMatchObject({ reason: 'grant_dead' });
  });

  test('is asked at the address of the connection', async () => {
    nock('https://acme.my.salesforce.com').get('/services/oauth2/userinfo').reply(200, { user_id: '005' });
    const { provider } = openReplayed(presetProfile('salesforce'));
    const own = { ...tokens, captured: { instance_url: 'https://acme.my.salesforce.com' } };
    await expect(provider.identity(own)).resolves.toEqual({ subject: '005' });
    await expect(provider.identity(tokens)).rejects.toMatchObject({ reason: 'egress_forbidden' });
  });

  test.each<[string, string, string, number, unknown, string]>([
    ['a dead token', 'github', '/user', 401, { message: 'Bad credentials' }, 'grant_dead'],
    [
      'a rate limit as 403',
      'github',
      '/user',
      403,
      { message: 'API rate limit exceeded' },
      'provider_unavailable',
    ],
    ['an outage', 'github', '/user', 500, '', 'provider_unavailable'],
    [
      'a dead token as 200',
      'slack',
      '/api/auth.test',
      200,
      { ok: false, error: 'token_revoked' },
      'grant_dead',
    ],
    ['an answer without an id', 'github', '/user', 200, { login: 'alice' }, 'answer_malformed'],
    ['a page', 'github', '/user', 200, '<html>', 'answer_malformed'],
    ['a redirect', 'github', '/user', 302, '', 'answer_malformed'],
  ])('%s (%s) is told apart from the others', async (_, preset, path, status, body, reason) => {
    const profile = presetProfile(preset);
    nock(profile.api.origins[0] ?? '')
      .get(path)
      .reply(status, body as string);
    expect(await caught(openReplayed(profile).provider.identity(tokens))).toMatchObject({ reason });
  });
});

describe('the end of tokens at the provider', () => {
  test('RFC 7009: the refresh token, with the proof of the client', async () => {
    let body = new URLSearchParams();
    nock('https://gitlab.com')
      .post('/oauth/revoke')
      .reply(async (request: Request) => {
        body = new URLSearchParams(await request.text());
        return [200, {}];
      });
    await expect(openReplayed(presetProfile('gitlab')).provider.revoke(tokens)).resolves.toBe('revoked');
    expect(Object.fromEntries(body)).toEqual({
      token: 'canary-rt-1',
      token_type_hint: 'refresh_token',
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
    });
  });

  test('GitHub: one token, by its own address', async () => {
    const basic = Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64');
    nock('https://api.github.com', { reqheaders: { authorization: `Basic ${basic}` } })
      .delete(`/applications/${CLIENT_ID}/token`, { access_token: 'canary-at-1' })
      .reply(204);
    const { provider } = openReplayed(presetProfile('github'));
    await expect(provider.revoke(tokens)).resolves.toBe('revoked');
    expect(provider.revocationScope).toBe('token');
  });

  test('Dropbox: the access token proves itself', async () => {
    nock('https://api.dropboxapi.com', { reqheaders: { authorization: 'Bearer canary-at-1' } })
      .post('/2/auth/token/revoke')
      .reply(200, 'null');
    const { provider } = openReplayed(presetProfile('dropbox'));
    await expect(provider.revoke(tokens)).resolves.toBe('revoked');
    expect(provider.revocationScope).toBe('grant');
  });

  test('QuickBooks: the refresh token in a JSON body', async () => {
    nock('https://developer.api.intuit.com')
      .post('/v2/oauth2/tokens/revoke', { token: 'canary-rt-1' })
      .reply(200);
    await expect(openReplayed(presetProfile('quickbooks')).provider.revoke(tokens)).resolves.toBe('revoked');
  });

  test('a provider without one says so, and is not asked', async () => {
    await expect(openReplayed(presetProfile('spotify')).provider.revoke(tokens)).resolves.toBe('unsupported');
  });

  test.each<[number, unknown]>([
    [200, { ok: false, error: 'canary-text' }],
    [503, 'canary-page'],
  ])('%i %j is not taken for success, nor quoted', async (status, body) => {
    nock('https://slack.com')
      .post('/api/auth.revoke')
      .reply(status, body as string);
    const error = await caught(openReplayed(presetProfile('slack')).provider.revoke(tokens));
    expect(error).toMatchObject({ reason: 'provider_unavailable', facts: { status, sent: true } });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('canary');
  });
});

describe('a key that a person types', () => {
  const profile = plainProfile({
    kind: 'credential',
    api: { origins: ['https://api.plain.example'], basicUser: '{email}/token' },
    credential: {
      fields: [
        { name: 'email', label: 'E-mail', kind: 'text' },
        { name: 'key', label: 'API key' },
      ],
    },
    identity: { url: 'https://api.plain.example/me', subject: 'id' },
  });
  const { provider } = openReplayed(profile);

  test('becomes a token set; what is no secret stands beside it', async () => {
    const set = provider.credential({ email: secret(' alice@example.com '), key: secret('canary-key\n') });
    expect(set.accessToken.reveal()).toBe('canary-key');
    expect(set.captured).toEqual({ email: 'alice@example.com' });
    const basic = Buffer.from('alice@example.com/token:canary-key').toString('base64');
    nock('https://api.plain.example', { reqheaders: { authorization: `Basic ${basic}` } })
      .get('/me')
      .reply(200, { id: 1 });
    await expect(provider.identity(set)).resolves.toEqual({ subject: '1' });
  });

  test.each<[string, Record<string, string>, string]>([
    ['no key', { email: 'a@b.example' }, 'key'],
    ['an empty key', { email: 'a@b.example', key: '  ' }, 'key'],
    ['a key in two lines', { email: 'a@b.example', key: 'canary\r\nx: 1' }, 'key'],
    ['a key outside ASCII', { email: 'a@b.example', key: 'canary-ключ' }, 'key'],
    ['no user', { key: 'canary' }, 'email'],
  ])('with %s is refused by the name of the field, unquoted', (_, fields, field) => {
    const typed = Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, secret(text)]));
    let error: unknown;
    try {
      provider.credential(typed);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ reason: 'answer_malformed', facts: { field } });
    expect(inspect(error, { depth: Infinity })).not.toContain('canary');
  });
});
