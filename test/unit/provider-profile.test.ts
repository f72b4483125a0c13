import { describe, expect, test } from 'vitest';
import { PRESETS } from '../../src/provider/presets.ts';
import { mergeTokenSet, parseTokenSet, printTokenSet, type TokenSet } from '../../src/provider/token-set.ts';
import { secret } from '../../src/secret.ts';
import { plainProfile, presetProfile, readProfile } from '../support/preset-profile.ts';

describe('presets', () => {
  test.each(Object.keys(PRESETS))('%s is a whole profile, with sources', (name) => {
    const profile = presetProfile(name);
    expect(profile.sources.length).toBeGreaterThan(0);
    expect(profile.identity).toBeDefined();
    const { authorizationEndpoint, tokenEndpoint } = profile;
    for (const url of [authorizationEndpoint, tokenEndpoint])
      expect(new URL(url ?? '').protocol).toBe('https:');
    // What is left in braces comes with the sign-in, and is captured there.
    const { sources: _, unverified: __, tenant: ___, ...facts } = profile;
    for (const [, left] of JSON.stringify(facts).matchAll(/"\{(\w+)\}/g)) {
      expect(profile.capture).toContain(left);
    }
  });

  test.each(Object.keys(PRESETS))('%s marks only fields that profiles have as unverified', (name) => {
    const profile = presetProfile(name);
    const known = [...Object.keys(profile), 'revocation', 'refreshEndpoint', 'identity'];
    for (const field of profile.unverified) expect(known).toContain(field.split('.')[0]);
  });

  test('a tenant that is missing is asked for, with an example', () => {
    expect(() => readProfile({ preset: 'zendesk', clientId: 'c', clientSecret: 's' })).toThrow(
      'tenant.subdomain: is missing: acme for acme.zendesk.com',
    );
  });

  test.each([
    ['shopify', 'shop', 'acme.myshopify.com'],
    ['zendesk', 'subdomain', 'acme.zendesk.com'],
  ])('a tenant of %s is the name alone, not the whole host', (preset, name, value) => {
    const settings = { preset, clientId: 'c', clientSecret: 's', tenant: { [name]: value } };
    expect(() => readProfile(settings)).toThrow(`tenant.${name}: must have no dots: acme for ${value}`);
  });

  test('a tenant that nothing uses is a mistake', () => {
    const settings = {
      preset: 'gitlab',
      clientId: 'c',
      clientSecret: 's',
      tenant: { hots: 'git.example.com' },
    };
    expect(() => readProfile(settings)).toThrow('tenant.hots: stands nowhere in the profile');
  });

  test('a tenant has its own host in every address', () => {
    const tenant = { host: 'git.example.com' };
    const profile = readProfile({ preset: 'gitlab', clientId: 'c', clientSecret: 's', tenant });
    expect(profile.tokenEndpoint).toBe('https://git.example.com/oauth/token');
    expect(profile.api.origins).toEqual(['https://git.example.com']);
  });
});

describe('a custom profile', () => {
  test.each<[string, () => unknown, string]>([
    ['an unknown setting', () => plainProfile({ tokenEndpiont: 'x' } as never), 'profile: Unrecognized key'],
    ['an address that is none', () => plainProfile({ tokenEndpoint: 'plain' }), 'profile.tokenEndpoint'],
    [
      'no token endpoint',
      () => plainProfile({ tokenEndpoint: undefined } as never),
      'profile.tokenEndpoint: is missing',
    ],
    [
      'an origin from nowhere',
      () => plainProfile({ api: { origins: ['https://{shop}.example'] } }),
      'profile.api.origins.0: {shop} is neither in tenant nor in capture',
    ],
    [
      'an origin that a browser could choose',
      () => plainProfile({ captureFromResponse: ['shop'], api: { origins: ['https://{shop}.example'] } }),
      'profile.api.origins.0: {shop} is neither in tenant nor in capture',
    ],
    [
      'two secrets in a form',
      () =>
        plainProfile({
          kind: 'credential',
          credential: {
            fields: [
              { name: 'key', label: 'Key' },
              { name: 'other', label: 'Other' },
            ],
          },
        }),
      'profile.credential.fields: needs exactly one field of the kind "secret"',
    ],
  ])('with %s is refused with its path', (_, read, problem) => {
    expect(read).toThrow(problem);
  });
});

describe('a token set', () => {
  const old: TokenSet = {
    accessToken: secret('at-1'),
    refreshToken: secret('rt-1'),
    scopes: ['repo'],
    expiresAtMs: 1_000,
    captured: { realmId: '9', instance_url: 'https://a.example' },
  };

  test('keeps after a refresh what the answer leaves out', () => {
    const merged = mergeTokenSet(old, { accessToken: secret('at-2'), captured: {} });
    expect(merged.accessToken.reveal()).toBe('at-2');
    expect(merged.refreshToken?.reveal()).toBe('rt-1');
    expect(merged.scopes).toEqual(['repo']);
    expect(merged.captured).toEqual(old.captured);
  });

  test('does not keep the end of the token that went', () => {
    expect(mergeTokenSet(old, { accessToken: secret('at-2'), captured: {} }).expiresAtMs).toBeUndefined();
  });

  test('takes what the answer brings', () => {
    const answer = {
      accessToken: secret('at-2'),
      refreshToken: secret('rt-2'),
      scopes: [],
      captured: { realmId: '8' },
    };
    const merged = mergeTokenSet(old, answer);
    expect(merged.refreshToken?.reveal()).toBe('rt-2');
    expect(merged.scopes).toEqual([]);
    expect(merged.captured).toEqual({ realmId: '8', instance_url: 'https://a.example' });
  });

  test('is read back as it was printed, and prints nothing by itself', () => {
    const printed = printTokenSet(old);
    const read = parseTokenSet(printed);
    expect(read.accessToken.reveal()).toBe('at-1');
    expect(read.refreshToken?.reveal()).toBe('rt-1');
    expect({ ...read, accessToken: 0, refreshToken: 0 }).toEqual({ ...old, accessToken: 0, refreshToken: 0 });
    expect(JSON.stringify({ old, printed })).not.toMatch(/at-1|rt-1/);
  });

  test.each(['{"accessToken":7,"canary":"at-1"}', 'at-1', '[]'])(
    '%s is not one, and is not quoted',
    (text) => {
      expect(() => parseTokenSet(secret(text))).toThrow(/^(?!.*at-1).*another shape/);
    },
  );
});
