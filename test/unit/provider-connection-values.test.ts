import { describe, expect, test } from 'vitest';
import { addressOf, originOf } from '../../src/provider/connection-values.ts';

describe('origins of a connection', () => {
  test('a value may be a whole origin, or labels of a host', () => {
    expect(originOf('{instance_url}', { instance_url: 'https://acme.my.example.com/' })).toBe(
      'https://acme.my.example.com',
    );
    expect(originOf('https://{shop}.example.com', { shop: 'acme' })).toBe('https://acme.example.com');
    expect(originOf('https://api.example.com', {})).toBe('https://api.example.com');
  });

  test.each([
    'evil.example/',
    'evil.example:1',
    'x@evil.example',
    'evil.example#',
    'evil.example?',
    '',
    '..',
    'a b',
  ])('the label "%s" cannot turn the host into another', (shop) => {
    expect(() => originOf('https://{shop}.example.com', { shop })).toThrow(
      expect.objectContaining({ reason: 'egress_forbidden' }),
    );
  });

  test.each([undefined, '', 'not a url', '//evil.example'])('no origin comes of %s', (value) => {
    const values: Record<string, string> = value === undefined ? {} : { base: value };
    expect(() => originOf('{base}', values)).toThrow(expect.objectContaining({ reason: 'egress_forbidden' }));
  });
});

describe('addresses of a connection', () => {
  test('values are escaped in paths and queries', () => {
    const values = { realmId: '12/34?x=1', base: 'https://acme.example.com/ignored' };
    expect(addressOf('https://api.example/company/{realmId}', values)).toBe(
      'https://api.example/company/12%2F34%3Fx%3D1',
    );
    expect(addressOf('{base}/me', values)).toBe('https://acme.example.com/me');
  });

  test('braces that name nothing are the caller’s own', () => {
    expect(addressOf('https://api.example/?q={a}', { b: '1' })).toBe('https://api.example/?q={a}');
  });
});
