/** The browser sign-in at this server's issuer, with an issuer that answers as told. */
import { beforeEach, describe, expect, test } from 'vitest';
import { openIssuerClient, type IssuerClient } from '../../callbacks/sign-in/issuer-client.ts';
import { Refusal } from '../../src/errors.ts';
import { secret } from '../../src/secret.ts';

const ISSUER = 'https://issuer.example';

let token: () => Promise<Response>;
let tokenCalls: number;
let issuer: IssuerClient;

beforeEach(() => {
  token = () => Promise.resolve(Response.json({ error: 'invalid_grant' }, { status: 400 }));
  tokenCalls = 0;
  issuer = openIssuerClient({
    issuer: ISSUER,
    clientId: 'keyturn',
    clientSecret: secret('s'),
    subjectClaim: 'sub',
    redirectUri: 'https://keyturn.example/sign-in/return',
    scopes: ['openid'],
    fetch: async (url) => {
      if (url.includes('/.well-known/')) {
        return Response.json({
          issuer: ISSUER,
          authorization_endpoint: `${ISSUER}/auth`,
          token_endpoint: `${ISSUER}/token`,
          jwks_uri: `${ISSUER}/jwks`,
          authorization_response_iss_parameter_supported: true,
        });
      }
      tokenCalls += 1;
      return token();
    },
  });
});

async function finish(more: Record<string, string>): Promise<unknown> {
  const { pending } = await issuer.begin('/connections', false);
  const query = new URLSearchParams({ state: pending.state, iss: ISSUER, ...more });
  return issuer.finish(query, pending).then(
    () => 'signed in',
    (error: unknown) => (error instanceof Refusal ? error.reason : error),
  );
}

describe('the issuer’s answer', () => {
  test.each([
    ['access_denied', 'access_denied'],
    ['temporarily_unavailable', 'provider_unavailable'],
    ['server_error', 'provider_unavailable'],
    ['login_required', 'provider_unavailable'],
  ])('error=%s is %s, and no token call is made', async (error, reason) => {
    expect(await finish({ error })).toBe(reason);
    expect(tokenCalls).toBe(0);
  });

  test.each([`${ISSUER}/`, 'https://other.example', ''])(
    'iss=%j is refused before a token call',
    async (iss) => {
      expect(await finish({ code: 'c', iss })).toBe('issuer_mismatch');
      expect(tokenCalls).toBe(0);
    },
  );

  test.each([
    [
      'a code that is dead',
      () => Response.json({ error: 'invalid_grant' }, { status: 400 }),
      'response_malformed',
    ],
    [
      'a client it does not know',
      () => Response.json({ error: 'invalid_client' }, { status: 401 }),
      'provider_misconfigured',
    ],
    [
      'an error of its own as JSON',
      () => Response.json({ error: 'server_error' }, { status: 503 }),
      'provider_unavailable',
    ],
    [
      'an error of its own as a page',
      () => new Response('<h1>Bad gateway</h1>', { status: 502 }),
      'provider_unavailable',
    ],
    [
      'tokens without an ID token',
      () => Response.json({ access_token: 'a', token_type: 'bearer' }),
      'response_malformed',
    ],
    ['something that is no JSON', () => new Response('hello'), 'response_malformed'],
  ])('%s', async (_what, answer, reason) => {
    token = () => Promise.resolve(answer());
    expect(await finish({ code: 'c' })).toBe(reason);
    expect(tokenCalls).toBe(1);
  });

  test('no answer at all is the issuer’s trouble', async () => {
    token = () => Promise.reject(new Refusal('provider_unavailable'));
    expect(await finish({ code: 'c' })).toBe('provider_unavailable');
  });
});
