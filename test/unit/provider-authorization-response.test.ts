import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkAuthorizationResponse } from '../../src/provider/authorization-response.ts';
import { secret } from '../../src/secret.ts';
import { plainProfile, presetProfile } from '../support/preset-profile.ts';

const issuer = 'https://plain.example';
const optional = plainProfile();
const required = plainProfile({ responseIssuer: 'required' });

function check(profile: typeof optional, query: string, advertised = false) {
  const expected = { issuer, advertised, clientSecret: secret('s') };
  return checkAuthorizationResponse(profile, new URLSearchParams(query), expected);
}

function refusal(reason: string): unknown {
  return expect.objectContaining({ reason });
}

describe('iss of an authorization response', () => {
  const right = encodeURIComponent(issuer);

  test('the right one passes', () => {
    for (const profile of [optional, required]) {
      expect(check(profile, `code=c&state=s&iss=${right}`, true)).toEqual({ kind: 'code', code: 'c' });
    }
  });

  test.each([
    ['of another provider', 'https://other.example'],
    ['with a slash at the end', `${issuer}/`],
    ['in capitals', 'HTTPS://PLAIN.EXAMPLE'],
    ['with the usual port', `${issuer}:443`],
    ['that is empty', ''],
  ])('one %s is refused, whether iss was promised or not', (_, iss) => {
    for (const advertised of [true, false]) {
      expect(() => check(optional, `code=c&state=s&iss=${encodeURIComponent(iss)}`, advertised)).toThrow(
        refusal('issuer_mismatch'),
      );
    }
  });

  test('a missing one passes only where nobody promised it', () => {
    expect(check(optional, 'code=c&state=s')).toEqual({ kind: 'code', code: 'c' });
    expect(() => check(optional, 'code=c&state=s', true)).toThrow(refusal('issuer_mismatch'));
    expect(() => check(required, 'code=c&state=s')).toThrow(refusal('issuer_mismatch'));
  });

  test('an error response with the wrong one is refused as well', () => {
    expect(() => check(optional, 'error=access_denied&state=s&iss=https%3A%2F%2Fother.example')).toThrow(
      refusal('issuer_mismatch'),
    );
  });
});

describe('parameters of an authorization response', () => {
  test.each(['code=a&code=a', 'code=a&state=s&state=s', 'code=a&iss=x&iss=x', 'error=x&error=x'])(
    '%s: a repeated one is refused',
    (query) => {
      expect(() => check(optional, query)).toThrow(refusal('state_repeated'));
    },
  );

  test('ones that nobody knows are ignored', () => {
    const query =
      'code=c&state=s&session_state=1&scope=a+b&authuser=0&hd=x.example&prompt=consent&client_info=2';
    expect(check(optional, query)).toEqual({ kind: 'code', code: 'c' });
  });

  test.each([
    ['4%2F0Ab', '4/0Ab'],
    ['a%2Bb', 'a+b'],
    ['a%252Fb', 'a%2Fb'],
    ['a%3D%3D', 'a=='],
  ])('the code %s is decoded once', (sent, code) => {
    expect(check(optional, `state=s&code=${sent}`)).toEqual({ kind: 'code', code });
  });

  test.each(['state=s', 'state=s&code=', ''])('"%s" has neither a code nor an error', (query) => {
    expect(() => check(optional, query)).toThrow(refusal('response_malformed'));
  });

  test.each([
    ['access_denied', 'denied'],
    ['temporarily_unavailable', 'temporary'],
    ['server_error', 'temporary'],
    ['login_required', 'temporary'],
    ['something_else', 'temporary'],
    ['invalid_scope', 'misconfigured'],
    ['unauthorized_client', 'misconfigured'],
  ] as const)('error=%s is %s', (error, verdict) => {
    const query = `state=s&error=${error}&error_description=%3Cb%3E%D0%B4%D0%B0%3C%2Fb%3E`;
    expect(check(optional, query)).toEqual({ kind: 'error', error, verdict });
  });

  test('an error that is no word goes on as "unnamed"', () => {
    expect(check(optional, 'state=s&error=%3Cscript%3E')).toMatchObject({ error: 'unnamed' });
  });
});

describe('a shop that was asked', () => {
  const shopify = presetProfile('shopify');
  const params = {
    code: 'c',
    state: 's',
    shop: 'acme.myshopify.com',
    timestamp: '1764547200',
    host: 'YWRt/a==',
  };

  function signed(values: Record<string, string>, key = 'app-secret'): URLSearchParams {
    const query = new URLSearchParams(values);
    query.sort();
    const hmac = createHmac('sha256', key).update(query.toString()).digest('hex');
    return new URLSearchParams({ ...values, hmac });
  }

  function arrive(query: URLSearchParams) {
    const expected = { issuer: 'x', advertised: false, clientSecret: secret('app-secret') };
    return checkAuthorizationResponse(shopify, query, expected);
  }

  test('answers with its own name and a signature under the client secret', () => {
    expect(arrive(signed(params))).toEqual({ kind: 'code', code: 'c' });
  });

  test('is not another shop, even with a good signature', () => {
    expect(() => arrive(signed({ ...params, shop: 'other.myshopify.com' }))).toThrow(
      refusal('issuer_mismatch'),
    );
    const { shop: _, ...without } = params;
    expect(() => arrive(signed(without))).toThrow(refusal('issuer_mismatch'));
  });

  test('is refused when the signature is missing, of another key, or over another code', () => {
    const forged = signed(params);
    forged.set('code', 'stolen');
    for (const query of [new URLSearchParams(params), signed(params, 'other'), forged]) {
      expect(() => arrive(query)).toThrow(refusal('issuer_mismatch'));
    }
  });
});
