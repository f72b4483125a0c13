/** The scripted person's cookies follow the rules that decide whether a sign-in works. */
import { describe, expect, it } from 'vitest';
import { cookieJar } from '../../src/sandbox/cookie-jar.ts';

const A = new URL('http://127.0.0.1:3000/connect/x');

function jarWith(...lines: string[]) {
  let nowMs = 1_000_000;
  const jar = cookieJar(() => nowMs);
  jar.store(A, lines);
  return {
    jar,
    later: (ms: number) => void (nowMs += ms),
    sent: (url: string, how: 'same' | 'cross-get' | 'cross-post' = 'same') =>
      jar.headerFor({
        url: new URL(url),
        isSameSite: how === 'same',
        isSafeNavigation: how !== 'cross-post',
      }),
  };
}

describe('cookies', () => {
  it('go back to their host on any port, and to no other address', () => {
    const { sent } = jarWith('a=1; Path=/');
    expect(sent('http://127.0.0.1:4000/')).toBe('a=1');
    expect(sent('http://127.0.0.2:3000/')).toBeUndefined();
    expect(sent('http://localhost:3000/')).toBeUndefined();
  });

  it('keep to their path, which is by default the folder they were set from', () => {
    const { sent } = jarWith('a=1', 'b=2; Path=/connect', 'c=3; Path=/other');
    expect(sent('http://127.0.0.1:3000/connect/y')).toBe('a=1; b=2');
    expect(sent('http://127.0.0.1:3000/connected')).toBeUndefined();
  });

  it('send longer paths first', () => {
    const { sent } = jarWith('root=1; Path=/', 'deep=2; Path=/connect');
    expect(sent('http://127.0.0.1:3000/connect/y')).toBe('deep=2; root=1');
  });

  it.each([
    ['Strict', undefined, undefined],
    ['Lax', 'a=1', undefined],
    ['', 'a=1', undefined],
  ])('SameSite=%s from another site', (sameSite, byGet, byPost) => {
    const { sent } = jarWith(`a=1; Path=/${sameSite === '' ? '' : `; SameSite=${sameSite}`}`);
    expect(sent('http://127.0.0.1:3000/')).toBe('a=1');
    expect(sent('http://127.0.0.1:3000/', 'cross-get')).toBe(byGet);
    expect(sent('http://127.0.0.1:3000/', 'cross-post')).toBe(byPost);
  });

  it('are refused when Secure or prefixed over plain http, or SameSite=None without Secure', () => {
    const { jar } = jarWith(
      'a=1; Secure',
      '__Host-b=1; Path=/',
      '__Secure-c=1',
      'd=1; SameSite=None',
      'e=1; Domain=0.0.1',
      'f=1; Domain=example.com',
      '=nameless',
    );
    expect(jar.list()).toEqual([]);
  });

  it('keep the rules of __Host- and Secure over https', () => {
    const jar = cookieJar(() => 0);
    const url = new URL('https://a.example.com/x/y');
    jar.store(url, [
      '__Host-a=1; Secure; Path=/',
      '__Host-b=1; Secure',
      '__Host-c=1; Secure; Path=/; Domain=example.com',
    ]);
    jar.store(url, ['d=1; Domain=example.com; Path=/', 'e=1; Secure; SameSite=None; Path=/']);
    expect(jar.list().map(({ name }) => name)).toEqual(['__Host-a', 'd', 'e']);
    const to = (href: string, isSameSite = true) =>
      jar.headerFor({ url: new URL(href), isSameSite, isSafeNavigation: false });
    expect(to('https://b.example.com/')).toBe('d=1');
    expect(to('https://a.example.com/', false)).toBe('e=1');
    expect(to('http://a.example.com/')).toBe('d=1');
  });

  it('end with Max-Age, which goes before Expires, and at once when they are cleared', () => {
    const { jar, later, sent } = jarWith(
      'a=1; Path=/; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT',
      'b=2; Path=/',
    );
    expect(sent('http://127.0.0.1:3000/')).toBe('a=1; b=2');
    later(10_000);
    expect(sent('http://127.0.0.1:3000/')).toBe('b=2');
    jar.store(A, ['b=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT']);
    expect(sent('http://127.0.0.1:3000/')).toBeUndefined();
  });

  it('replace a cookie of the same name, host and path', () => {
    const { jar, sent } = jarWith('a=1; Path=/', 'b=2; Path=/');
    jar.store(A, ['a=3; Path=/; HttpOnly']);
    expect(sent('http://127.0.0.1:3000/')).toBe('a=3; b=2');
    expect(JSON.stringify(jar.list())).not.toContain('value');
  });
});
