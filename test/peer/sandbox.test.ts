/**
 * The sandbox, seen by its peers: a relying party (openid-client), an OAuth client of Paperboat, an MCP
 * host that registers itself, and people with browsers.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openPerson, type Person } from '../../src/sandbox/person.ts';
import { recordIds } from '../../src/sandbox/records.ts';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts';

/**
 * Stands where Keyturn's pages would: takes the way back, and offers links that another site's page
 * follows.
 */
let keyturn: Server;
let publicUrl: string;
let sandbox: Sandbox;
let alice: Person;
const noise: string[] = [];

beforeAll(async () => {
  keyturn = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Back</title><p>back</p>');
  });
  await new Promise<void>((resolve) => keyturn.listen(0, '127.0.0.1', resolve));
  publicUrl = `http://127.0.0.1:${(keyturn.address() as AddressInfo).port}`;
});

afterAll(async () => {
  keyturn.closeAllConnections();
  await new Promise((resolve) => keyturn.close(resolve));
});

beforeEach(async () => {
  noise.length = 0;
  for (const name of ['log', 'info', 'warn', 'error'] as const) {
    vi.spyOn(console, name).mockImplementation((...words) => void noise.push(words.join(' ')));
  }
  sandbox = await openSandbox({ mcpResource: `${publicUrl}/mcp`, keyturnPublicUrl: publicUrl });
  alice = openPerson();
});

afterEach(async () => {
  await sandbox.close();
  vi.restoreAllMocks();
});

const insecure = { execute: [client.allowInsecureRequests] };

async function relyingParty(): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret } = sandbox.issuer;
  const authentication = client.ClientSecretPost(clientSecret.reveal());
  return client.discovery(new URL(issuer), clientId, undefined, authentication, insecure);
}

async function paperboatClient(): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret } = sandbox.providerSettings;
  const authentication = client.ClientSecretBasic(clientSecret.reveal());
  return client.discovery(new URL(issuer), clientId, undefined, authentication, insecure);
}

interface Started {
  readonly url: URL;
  readonly checks: client.AuthorizationCodeGrantChecks;
}

async function start(config: client.Configuration, parameters: Record<string, string>): Promise<Started> {
  const verifier = client.randomPKCECodeVerifier();
  const state = client.randomState();
  const url = client.buildAuthorizationUrl(config, {
    state,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...parameters,
  });
  return { url, checks: { expectedState: state, pkceCodeVerifier: verifier } };
}

async function signIn(
  config: client.Configuration,
  person: Person,
  as: string,
  more: Record<string, string> = {},
) {
  const { url, checks } = await start(config, {
    redirect_uri: `${publicUrl}/sign-in/return`,
    scope: 'openid email',
    ...more,
  });
  const page = await person.signInEverywhere(url.href, { as });
  const tokens = await client.authorizationCodeGrant(config, new URL(page.url), {
    ...checks,
    idTokenExpected: true,
  });
  return tokens.claims();
}

async function connect(config: client.Configuration, person: Person, more: Record<string, string> = {}) {
  const { redirectUri, scopes } = sandbox.providerSettings;
  const { url, checks } = await start(config, {
    redirect_uri: redirectUri,
    scope: scopes.join(' '),
    ...more,
  });
  const page = await person.signInEverywhere(url.href, { as: 'alice' });
  return client.authorizationCodeGrant(config, new URL(page.url), checks);
}

async function records(token: string, query = ''): Promise<Response> {
  return fetch(`${sandbox.providerSettings.recordsUrl}${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
}

describe('sandbox', () => {
  it('opens three sites without a word on the console', async () => {
    const second = await openSandbox({ mcpResource: `${publicUrl}/mcp`, keyturnPublicUrl: publicUrl });
    const hosts = [second.issuer.issuer, second.saas.origin, publicUrl].map((url) => new URL(url).hostname);
    await second.close();
    expect(new Set(hosts).size).toBe(3);
    expect(noise).toEqual([]);
  });

  it.each([
    ['mcpResource', { mcpResource: 'https://mcp.example.com/mcp', keyturnPublicUrl: 'http://localhost:1' }],
    ['keyturnPublicUrl', { mcpResource: 'http://localhost:1/mcp', keyturnPublicUrl: 'https://example.com' }],
  ])('refuses a %s that is not on loopback', async (field, options) => {
    await expect(openSandbox(options)).rejects.toThrow(`${field}: the sandbox works on loopback only`);
  });

  it('does not answer to a name of another site', async () => {
    const { issuer } = sandbox.issuer;
    const { hostname, port } = new URL(issuer);
    const status = await new Promise((resolve, reject) => {
      void import('node:http').then(({ get }) =>
        get({ hostname, port, path: '/jwks', headers: { host: 'evil.example' } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).on('error', reject),
      );
    });
    expect(status).toBe(421);
  });
});

describe('issuer', () => {
  it('signs a person in with OpenID Connect, code and PKCE, without a question for consent', async () => {
    const claims = await signIn(await relyingParty(), alice, 'alice');
    expect(claims).toMatchObject({ sub: 'alice', iss: sandbox.issuer.issuer, email: 'alice@example.com' });
    expect(claims?.auth_time).toBeTypeOf('number');
    expect(alice.visits.filter(({ method }) => method === 'POST')).toHaveLength(1);
    expect(noise).toEqual([]);
  });

  it('names itself in the authorization response (RFC 9207)', async () => {
    await signIn(await relyingParty(), alice, 'alice');
    expect(new URL(alice.page.url).searchParams.get('iss')).toBe(sandbox.issuer.issuer);
  });

  it('knows a person who comes back, and asks again with prompt=login or max_age=0', async () => {
    const config = await relyingParty();
    await signIn(config, alice, 'alice');
    const presses = () => alice.visits.filter(({ method }) => method === 'POST').length;
    await signIn(config, alice, 'alice');
    expect(presses()).toBe(1);
    await signIn(config, alice, 'alice', { prompt: 'login' });
    expect(presses()).toBe(2);
    // The session counts in whole seconds: it has to be older than the age that is allowed.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await signIn(config, alice, 'alice', { max_age: '0' });
    expect(presses()).toBe(3);
  });

  it.each(['login', 'select_account'])(
    'lets another person sign in on the same browser (prompt=%s)',
    async (prompt) => {
      const config = await relyingParty();
      await signIn(config, alice, 'alice');
      const claims = await signIn(config, alice, 'bob', { prompt });
      expect(claims?.sub).toBe('bob');
      expect((await signIn(config, alice, 'alice'))?.sub).toBe('bob');
    },
  );

  it('registers an MCP host, asks for consent and issues a JWT for the MCP endpoint alone', async () => {
    const { issuer, jwksUri } = sandbox.issuer;
    const redirect = `${publicUrl}/host`;
    const config = await client.dynamicClientRegistration(
      new URL(issuer),
      {
        client_name: 'A host',
        redirect_uris: [redirect],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
      },
      client.None(),
      insecure,
    );
    const resource = `${publicUrl}/mcp`;
    const { url, checks } = await start(config, { redirect_uri: redirect, scope: 'mcp:tools', resource });
    await alice.open(url.href);
    const asked = await alice.press({ name: 'person', value: 'alice' });
    expect(asked.html).toContain('A host');
    const back = await alice.press({ name: 'action', value: 'allow' });
    const tokens = await client.authorizationCodeGrant(config, new URL(back.url), checks, { resource });
    const { payload, protectedHeader } = await jwtVerify(
      tokens.access_token,
      createRemoteJWKSet(new URL(jwksUri)),
      { issuer, audience: resource, typ: 'at+jwt' },
    );
    expect(protectedHeader.alg).toBe('ES256');
    expect(payload).toMatchObject({
      sub: 'alice',
      client_id: config.clientMetadata().client_id,
      scope: 'mcp:tools',
    });
    const renewed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '', { resource });
    expect(decodeJwt(renewed.access_token).aud).toBe(resource);
    expect(noise).toEqual([]);
  });

  it('gives a host that names neither scope nor resource a token for the MCP endpoint', async () => {
    const { issuer } = sandbox.issuer;
    const redirect = `${publicUrl}/host`;
    const metadata = { redirect_uris: [redirect], token_endpoint_auth_method: 'none' };
    const config = await client.dynamicClientRegistration(new URL(issuer), metadata, client.None(), insecure);
    const { url, checks } = await start(config, { redirect_uri: redirect });
    url.searchParams.delete('scope');
    const page = await alice.signInEverywhere(url.href, { as: 'alice' });
    const tokens = await client.authorizationCodeGrant(config, new URL(page.url), checks);
    expect(decodeJwt(tokens.access_token)).toMatchObject({ aud: `${publicUrl}/mcp`, scope: 'mcp:tools' });
  });

  it('refuses another resource, and a request without PKCE', async () => {
    const config = await relyingParty();
    const redirect_uri = `${publicUrl}/sign-in/return`;
    const { url } = await start(config, {
      redirect_uri,
      scope: 'openid',
      resource: 'https://other.example/',
    });
    await alice.open(url.href);
    expect(new URL(alice.page.url).searchParams.get('error')).toBe('invalid_target');
    const bare = client.buildAuthorizationUrl(config, { redirect_uri, scope: 'openid' });
    await alice.open(bare.href);
    expect(new URL(alice.page.url).searchParams.get('error')).toBe('invalid_request');
  });

  it('offers what real hosts look for', async () => {
    const response = await fetch(`${sandbox.issuer.issuer}/.well-known/oauth-authorization-server`);
    expect(await response.json()).toMatchObject({
      registration_endpoint: `${sandbox.issuer.issuer}/reg`,
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
      code_challenge_methods_supported: ['S256'],
    });
  });

  it('mints a token with its own key, and none for a resource elsewhere', async () => {
    const { issuer, jwksUri } = sandbox.issuer;
    const request = { sub: 'bob', clientId: 'host', scope: 'mcp:tools', resource: `${publicUrl}/mcp` };
    const keys = createRemoteJWKSet(new URL(jwksUri));
    const good = await sandbox.issuer.issueAccessToken({ ...request, expiresInSeconds: 60 });
    const { payload } = await jwtVerify(good, keys, { issuer, audience: request.resource, typ: 'at+jwt' });
    expect(payload).toMatchObject({ sub: 'bob', client_id: 'host' });
    const old = await sandbox.issuer.issueAccessToken({ ...request, expiresInSeconds: -60 });
    await expect(jwtVerify(old, keys)).rejects.toMatchObject({ code: 'ERR_JWT_EXPIRED' });
    const elsewhere = { ...request, resource: 'https://mcp.example.com/', expiresInSeconds: 60 };
    await expect(sandbox.issuer.issueAccessToken(elsewhere)).rejects.toThrow('resource: the sandbox works');
  });
});

describe('Paperboat', () => {
  it('asks who somebody is and for consent, once; then it lets them through', async () => {
    const config = await paperboatClient();
    const tokens = await connect(config, alice);
    expect(tokens.scope).toBe('records:read profile:read');
    expect(tokens.refresh_token).toBeTypeOf('string');
    const presses = alice.visits.filter(({ method }) => method === 'POST').length;
    expect(presses).toBe(2);
    await connect(config, alice);
    expect(alice.visits.filter(({ method }) => method === 'POST')).toHaveLength(presses);
    await connect(config, alice, { prompt: 'consent' });
    expect(alice.visits.filter(({ method }) => method === 'POST')).toHaveLength(presses + 1);
    expect(noise).toEqual([]);
  });

  it('sends a no back as access_denied', async () => {
    const { redirectUri } = sandbox.providerSettings;
    const config = await paperboatClient();
    const { url, checks } = await start(config, { redirect_uri: redirectUri, scope: 'records:read' });
    await alice.open(url.href);
    await alice.press({ name: 'person', value: 'alice@paperboat' });
    const back = await alice.press({ name: 'action', value: 'deny' });
    await expect(client.authorizationCodeGrant(config, new URL(back.url), checks)).rejects.toMatchObject({
      error: 'access_denied',
    });
  });

  it('says whose token it is', async () => {
    const tokens = await connect(await paperboatClient(), alice);
    const response = await fetch(sandbox.providerSettings.identity.url, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    });
    expect(await response.json()).toMatchObject({ id: 'alice@paperboat', email: 'alice@paperboat.example' });
  });

  it('hands out a thousand records with known ids in ten pages', async () => {
    const { access_token } = await connect(await paperboatClient(), alice);
    const ids: string[] = [];
    let pages = 0;
    for (let next: string | null = ''; next !== null && pages < 20; pages += 1) {
      const response = await records(access_token, next === '' ? '' : `?cursor=${next}`);
      const body = (await response.json()) as { records: { id: string }[]; next: string | null };
      ids.push(...body.records.map(({ id }) => id));
      next = body.next;
    }
    expect(pages).toBe(10);
    expect(ids).toEqual(recordIds());
    expect(sandbox.saas.apiCalls.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(JSON.stringify(sandbox.saas.apiCalls)).not.toContain(access_token);
  });

  it('refuses a cursor that it never gave, and a senseless limit', async () => {
    const { access_token } = await connect(await paperboatClient(), alice);
    expect((await records(access_token, '?cursor=abc')).status).toBe(400);
    expect((await records(access_token, '?limit=0')).status).toBe(400);
    expect((await records(access_token, '?limit=101')).status).toBe(400);
  });

  it('answers 401 without a token, 401 invalid_token for a bad one, 403 for a narrow one', async () => {
    const bare = await fetch(sandbox.providerSettings.recordsUrl);
    expect(bare.status).toBe(401);
    expect(bare.headers.get('www-authenticate')).toBe('Bearer realm="paperboat"');
    const unknown = await records('nonsense');
    expect(unknown.status).toBe(401);
    expect(unknown.headers.get('www-authenticate')).toContain('error="invalid_token"');
    const narrow = await connect(await paperboatClient(), alice, { scope: 'profile:read' });
    const refused = await records(narrow.access_token);
    expect(refused.status).toBe(403);
    expect(refused.headers.get('www-authenticate')).toContain(
      'error="insufficient_scope", scope="records:read"',
    );
  });

  it('answers 401 once access tokens have expired; a refresh gives a token that works', async () => {
    const config = await paperboatClient();
    const tokens = await connect(config, alice);
    expect(sandbox.saas.expireAccessTokens()).toBe(1);
    const expired = await records(tokens.access_token);
    expect(expired.status).toBe(401);
    expect(expired.headers.get('www-authenticate')).toContain('error="invalid_token"');
    const renewed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '');
    expect(renewed.refresh_token).not.toBe(tokens.refresh_token);
    expect((await records(renewed.access_token)).status).toBe(200);
  });

  it('lets access tokens run out by themselves', async () => {
    await sandbox.close();
    sandbox = await openSandbox({
      mcpResource: `${publicUrl}/mcp`,
      keyturnPublicUrl: publicUrl,
      accessTokenSeconds: 1,
    });
    const tokens = await connect(await paperboatClient(), alice);
    expect(tokens.expires_in).toBe(1);
    await vi.waitFor(async () => expect((await records(tokens.access_token)).status).toBe(401), {
      timeout: 5_000,
      interval: 100,
    });
  });

  it('ends the whole grant when a refresh token is used twice', async () => {
    const config = await paperboatClient();
    const tokens = await connect(config, alice);
    const first = tokens.refresh_token ?? '';
    const second = await client.refreshTokenGrant(config, first);
    await expect(client.refreshTokenGrant(config, first)).rejects.toMatchObject({ error: 'invalid_grant' });
    expect((await records(second.access_token)).status).toBe(401);
    await expect(client.refreshTokenGrant(config, second.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    });
    expect(sandbox.saas.tokenCalls.map(({ grantType, outcome }) => [grantType, outcome])).toEqual([
      ['authorization_code', 'ok'],
      ['refresh_token', 'ok'],
      ['refresh_token', 'invalid_grant'],
      ['refresh_token', 'invalid_grant'],
    ]);
  });

  it('kills everything of one account when its grants are revoked, and asks for consent again', async () => {
    const config = await paperboatClient();
    const tokens = await connect(config, alice);
    expect(sandbox.saas.revokeGrants('bob@paperboat')).toBe(0);
    expect((await records(tokens.access_token)).status).toBe(200);
    expect(sandbox.saas.revokeGrants('alice@paperboat')).toBe(1);
    expect((await records(tokens.access_token)).status).toBe(401);
    await expect(client.refreshTokenGrant(config, tokens.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    });
    const again = await connect(config, alice);
    expect((await records(again.access_token)).status).toBe(200);
    expect(alice.visits.filter(({ method }) => method === 'POST')).toHaveLength(3);
  });

  it('revokes a token that its client hands back', async () => {
    const config = await paperboatClient();
    const tokens = await connect(config, alice);
    await client.tokenRevocation(config, tokens.refresh_token ?? '');
    expect(sandbox.saas.revocationCalls).toBe(1);
    expect((await records(tokens.access_token)).status).toBe(401);
  });

  it('runs an action once, after so many pages', async () => {
    const { access_token } = await connect(await paperboatClient(), alice);
    let ran = 0;
    sandbox.saas.afterPages(2, () => {
      ran += 1;
      sandbox.saas.expireAccessTokens();
    });
    const statuses = [];
    for (let page = 0; page < 4; page += 1) statuses.push((await records(access_token)).status);
    expect(statuses).toEqual([200, 200, 401, 401]);
    expect(ran).toBe(1);
  });

  it('fails the next request of a kind, once', async () => {
    const config = await paperboatClient();
    const tokens = await connect(config, alice);
    sandbox.saas.failNext('api-unavailable');
    sandbox.saas.failNext('api-rate-limited');
    sandbox.saas.failNext('api-dropped');
    expect((await records(tokens.access_token)).status).toBe(503);
    const limited = await records(tokens.access_token);
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1']);
    await expect(records(tokens.access_token)).rejects.toThrow('fetch failed');
    expect((await records(tokens.access_token)).status).toBe(200);
    expect(sandbox.saas.apiCalls.map(({ status }) => status)).toEqual([503, 429, 0, 200]);

    const before = sandbox.saas.tokenCalls.length;
    sandbox.saas.failNext('token-unavailable');
    await expect(client.refreshTokenGrant(config, tokens.refresh_token ?? '')).rejects.toThrow();
    expect(sandbox.saas.tokenCalls).toHaveLength(before);
    sandbox.saas.failNext('token-reply-lost');
    await expect(client.refreshTokenGrant(config, tokens.refresh_token ?? '')).rejects.toThrow();
    // It was rotated all the same.
    expect(sandbox.saas.tokenCalls.at(-1)).toMatchObject({ grantType: 'refresh_token', outcome: 'ok' });
    await expect(client.refreshTokenGrant(config, tokens.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });
});
