import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { securityHeaders } from '../../callbacks/security-headers.ts';
import { samplePages } from '../support/page-models.ts';

describe('the headers of a page', () => {
  const headers = securityHeaders(true);
  const policy = Object.fromEntries(
    (headers['content-security-policy'] ?? '').split('; ').map((directive) => {
      const [name, ...sources] = directive.split(' ');
      return [name, sources.join(' ')];
    }),
  );

  test('allow our style, our icon, forms to ourselves, and nothing else', () => {
    expect(Object.keys(policy)).toEqual([
      'default-src',
      'style-src',
      'img-src',
      'form-action',
      'frame-ancestors',
      'base-uri',
    ]);
    expect(policy).toMatchObject({
      'default-src': "'none'",
      'img-src': 'data:',
      'form-action': "'self'",
      'frame-ancestors': "'none'",
      'base-uri': "'none'",
    });
  });

  test.each(samplePages())('carry the hash of the style in $name', ({ html }) => {
    const style = /<style>([^<]*)<\/style>/.exec(html)?.[1] ?? '';
    expect(policy['style-src']).toBe(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  });

  test('keep the page out of caches, frames and referrers', () => {
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers['permissions-policy']).toContain('camera=()');
  });

  test('bind a browser to https only where the public URL is https', () => {
    expect(headers['strict-transport-security']).toBe('max-age=31536000');
    expect(securityHeaders(false)).not.toHaveProperty('strict-transport-security');
  });
});
