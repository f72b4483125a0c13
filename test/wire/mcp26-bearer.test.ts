import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTHeaderParameters } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isRefusal } from '../../src/errors.ts';
import { openBearer, type BearerOptions } from '../../src/mcp/bearer.ts';
import { ISSUER, openRig, rpc, type Rig } from '../support/mcp-rig.ts';
import { TOOLS } from '../support/mcp-tools.ts';

const RESOURCE = 'http://localhost:3000/mcp';

let keys: { privateKey: CryptoKey; publicKey: CryptoKey };
let strange: { privateKey: CryptoKey; publicKey: CryptoKey };
let jwks: string;
let rig: Rig;
const fetched: string[] = [];
let down = false;
let nowMs = Date.now();

/** The issuer's two documents; everything else is not there. */
async function fetch(url: string): Promise<Response> {
  fetched.push(url);
  if (down) throw new TypeError('fetch failed');
  await Promise.resolve();
  if (url === `${ISSUER}/.well-known/openid-configuration`) {
    return Response.json({ issuer: ISSUER, jwks_uri: `${ISSUER}/jwks` });
  }
  if (url === `${ISSUER}/jwks`) {
    return new Response(jwks, { headers: { 'content-type': 'application/json' } });
  }
  return new Response('', { status: 404 });
}

function bearer(more: Partial<BearerOptions> = {}) {
  return openBearer({
    issuer: ISSUER,
    audience: RESOURCE,
    requiredScopes: ['mcp:tools'],
    subjectClaim: 'sub',
    fetch,
    wallMs: () => nowMs,
    ...more,
  });
}

interface TokenParts {
  readonly claims?: Record<string, unknown>;
  readonly header?: Partial<JWTHeaderParameters>;
  readonly key?: CryptoKey;
  /** Seconds from now. */
  readonly expiresIn?: number;
}

function token(parts: TokenParts = {}): Promise<string> {
  const now = Math.floor(nowMs / 1_000);
  const claims = {
    iss: ISSUER,
    aud: RESOURCE,
    sub: 'alice',
    client_id: 'cursor',
    scope: 'openid mcp:tools',
    iat: now,
    exp: now + (parts.expiresIn ?? 300),
    ...parts.claims,
  };
  const kept = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
  return new SignJWT(kept)
    .setProtectedHeader({ alg: 'ES256', kid: 'k1', typ: 'at+jwt', ...parts.header })
    .sign(parts.key ?? keys.privateKey);
}

beforeAll(async () => {
  keys = await generateKeyPair('ES256', { extractable: true });
  strange = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(keys.publicKey);
  jwks = JSON.stringify({ keys: [{ ...jwk, kid: 'k1', alg: 'ES256', use: 'sig' }] });
  rig = await openRig({ tools: TOOLS, authenticate: bearer() });
});

beforeEach(() => {
  down = false;
  fetched.length = 0;
});

afterAll(() => rig.close());

const ask = (authorization: string | undefined) =>
  rpc(rig, { method: 'tools/list', headers: { authorization } });

const challengeOf = async (authorization: string | undefined) => {
  const answer = await ask(authorization);
  return { status: answer.status, challenge: String(answer.headers['www-authenticate']) };
};

describe('a request', () => {
  test('with a good token is served', async () => {
    expect((await ask(`Bearer ${await token()}`)).status).toBe(200);
    expect((await ask(`bearer  ${await token({ header: { typ: 'application/at+jwt' } })}`)).status).toBe(200);
  });

  test('without one is told where to get one, and of no error', async () => {
    for (const authorization of [undefined, 'Basic YTpi']) {
      const { status, challenge } = await challengeOf(authorization);
      expect(status).toBe(401);
      expect(challenge).toBe(
        'Bearer scope="mcp:tools", resource_metadata="http://localhost:3000/.well-known/oauth-protected-resource/mcp"',
      );
    }
  });

  test.each<[string, () => Promise<string> | string, RegExp]>([
    ['expired', () => token({ expiresIn: -60 }), /expired/],
    [
      'of another issuer',
      () => token({ claims: { iss: 'https://other.example' } }),
      /Its iss is not accepted/,
    ],
    [
      'for another resource',
      () => token({ claims: { aud: 'https://other.example/mcp' } }),
      /Its aud is not accepted/,
    ],
    ['without an audience', () => token({ claims: { aud: undefined } }), /Its aud is not accepted/],
    ['without an end', () => token({ claims: { exp: undefined } }), /Its exp is not accepted/],
    [
      'not yet good',
      () => token({ claims: { nbf: Math.floor(nowMs / 1_000) + 600 } }),
      /Its nbf is not accepted/,
    ],
    ['signed by a stranger', () => token({ key: strange.privateKey }), /cannot be verified/],
    ['of an unknown key', () => token({ header: { kid: 'k9' } }), /cannot be verified/],
    ['typed as an ID token', () => token({ header: { typ: 'JWT' } }), /Its typ is not accepted/],
    ['with claims of an ID token', () => token({ claims: { nonce: 'n' } }), /ID token/],
    ['with the hash of another token', () => token({ claims: { at_hash: 'h' } }), /ID token/],
    ['bound to a key', () => token({ claims: { cnf: { jkt: 'x' } } }), /bound/],
    ['without a subject', () => token({ claims: { sub: undefined } }), /no usable sub/],
    ['with a subject that is a number', () => token({ claims: { sub: 7 } }), /no usable sub/],
    ['without a client', () => token({ claims: { client_id: undefined } }), /no client/],
    ['unsigned', () => `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.`, /cannot be verified/],
    ['that is no token', () => 'abc', /cannot be verified/],
    ['with a space in it', () => 'abc def', /not readable/],
    ['that is empty', () => '', /not readable/],
    ['longer than any', () => 'a'.repeat(16_385), /too long/],
  ])('with a token %s is refused as invalid', async (_what, make, why) => {
    const { status, challenge } = await challengeOf(`Bearer ${await make()}`);
    expect(status).toBe(401);
    expect(challenge).toContain('Bearer error="invalid_token"');
    expect(challenge).toMatch(why);
    expect(challenge).toContain('resource_metadata="');
  });

  test('with too few scopes is told which are needed', async () => {
    const { status, challenge } = await challengeOf(`Bearer ${await token({ claims: { scope: 'openid' } })}`);
    expect(status).toBe(403);
    expect(challenge).toContain('error="insufficient_scope"');
    expect(challenge).toContain('scope="mcp:tools"');
  });

  test('with its token in the address is not served', async () => {
    const answer = await rig.app.inject({
      method: 'POST',
      url: `/mcp?access_token=${await token()}`,
      headers: { host: 'localhost:3000', 'content-type': 'application/json' },
      payload: '{}',
    });
    expect(answer.statusCode).toBe(401);
  });

  test('while the keys cannot be had is told to come again, not that its token is bad', async () => {
    const other = await openRig({ tools: TOOLS, authenticate: bearer() });
    try {
      down = true;
      const call = { method: 'tools/list', headers: { authorization: `Bearer ${await token()}` } };
      const answer = await rpc(other, call);
      expect(answer.status).toBe(503);
      expect(answer.headers['www-authenticate']).toBeUndefined();
      expect(answer.body.error).toMatchObject({ data: { reason: 'provider_unavailable' } });
      down = false;
      expect((await rpc(other, call)).status).toBe(200);
    } finally {
      await other.close();
    }
  });

  test('by GET and DELETE needs a token as well', async () => {
    for (const method of ['GET', 'DELETE'] as const) {
      const answer = await rig.app.inject({ method, url: '/mcp', headers: { host: 'localhost:3000' } });
      expect(answer.statusCode).toBe(401);
    }
  });
});

describe('who calls', () => {
  const who = async (parts: TokenParts, more: Partial<BearerOptions> = {}) =>
    bearer(more)({ headers: { authorization: `Bearer ${await token(parts)}` } });

  test('is issuer and subject, through a verified client', async () => {
    expect(await who({})).toMatchObject({
      owner: `${ISSUER}#alice`,
      clientId: 'cursor',
      scopes: ['openid', 'mcp:tools'],
    });
    expect(await who({ claims: { client_id: undefined, azp: 'claude' } })).toMatchObject({
      clientId: 'claude',
    });
    expect(await who({ claims: { client_id: undefined } }, { clientIdWhenMissing: 'any' })).toMatchObject({
      clientId: 'any',
    });
  });

  test('may be named by an object id within its tenant', async () => {
    const options = { subjectClaim: 'oid' } as const;
    expect(await who({ claims: { oid: 'o1', tid: 't1' } }, options)).toMatchObject({
      owner: `${ISSUER}#t1/o1`,
    });
    await expect(who({ claims: { oid: 'o1' } }, options)).rejects.toMatchObject({ reason: 'token_invalid' });
  });

  test('is never named by a claim that changes hands', () => {
    expect(() => bearer({ subjectClaim: 'email' as 'sub' })).toThrow(/does not name a person for good/);
  });

  test('has scopes in any of the usual spellings', async () => {
    const claims = { scope: undefined };
    expect(await who({ claims: { ...claims, scp: 'mcp:tools other' } })).toMatchObject({
      scopes: ['mcp:tools', 'other'],
    });
    expect(await who({ claims: { ...claims, scp: ['mcp:tools'] } })).toMatchObject({ scopes: ['mcp:tools'] });
  });

  test('may use tokens without a type where the operator says so, but never an ID token', async () => {
    const options = { acceptsUntypedTokens: true };
    expect(await who({ header: { typ: 'JWT' } }, options)).toMatchObject({ clientId: 'cursor' });
    for (const claims of [{ nonce: 'n' }, { c_hash: 'x' }, { typ: 'ID' }, { token_use: 'id' }]) {
      const refused = await who({ header: { typ: 'JWT' }, claims }, options).catch((error: unknown) => error);
      expect(isRefusal(refused, 'token_invalid')).toBe(true);
    }
  });
});

test('a verified token is not verified again for half a minute, and never beyond its end', async () => {
  const check = bearer();
  const short = { headers: { authorization: `Bearer ${await token({ expiresIn: 10 })}` } };
  const long = { headers: { authorization: `Bearer ${await token({ expiresIn: 300 })}` } };
  await check(short);
  await check(long);
  // The issuer's document, then its keys, once for both.
  expect(fetched).toEqual([
    `${ISSUER}/.well-known/oauth-authorization-server`,
    `${ISSUER}/.well-known/openid-configuration`,
    `${ISSUER}/jwks`,
  ]);
  const first = await check(long);
  expect(await check(long)).toBe(first);
  const startedMs = nowMs;
  try {
    nowMs = startedMs + 16_000;
    await expect(check(short)).rejects.toMatchObject({ reason: 'token_invalid' });
    expect(await check(long)).toBe(first);
    nowMs = startedMs + 30_001;
    expect(await check(long)).not.toBe(first);
  } finally {
    nowMs = startedMs;
  }
});

test('metadata that speaks for another issuer is not believed', async () => {
  const check = bearer({
    fetch: async (url) =>
      url.endsWith('/jwks')
        ? fetch(url)
        : Response.json({ issuer: 'https://evil.example', jwks_uri: `${ISSUER}/jwks` }),
  });
  await expect(check({ headers: { authorization: `Bearer ${await token()}` } })).rejects.toMatchObject({
    reason: 'provider_unavailable',
  });
});
