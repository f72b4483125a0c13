/**
 * Cookies of the pages: HttpOnly, Lax (the way back from a provider is a cross-site navigation), Secure and `__Host-`
 * on https (R14). On plain http, which is loopback only (D14), browsers know no `__Host-` cookies: they go without.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type {} from '@fastify/cookie';

/** Where cookies are set and read. */
export interface CookieJar {
  read(request: FastifyRequest, name: string): string | undefined;
  set(reply: FastifyReply, name: string, value: string, maxAgeSeconds: number): void;
  clear(reply: FastifyReply, name: string): void;
  /**
   * Before one more cookie of a kind: clears the oldest that the browser has sent, so that no more than `most` are
   * left with it. Headers that grow without end are refused before any page of ours (R29).
   */
  makeRoom(request: FastifyRequest, reply: FastifyReply, prefix: string, most: number): void;
}

/** Largest value that is looked at. */
const MOST_LENGTH = 4_096;

export function cookieJar(publicUrl: string): CookieJar {
  const secure = publicUrl.startsWith('https:');
  const named = (name: string): string => (secure ? `__Host-${name}` : name);
  const attributes = { path: '/', httpOnly: true, secure, sameSite: 'lax' } as const;
  const jar: CookieJar = {
    read(request, name) {
      const value = request.cookies[named(name)];
      return value === undefined || value.length > MOST_LENGTH ? undefined : value;
    },
    set(reply, name, value, maxAgeSeconds) {
      void reply.setCookie(named(name), value, {
        ...attributes,
        maxAge: Math.max(1, Math.floor(maxAgeSeconds)),
      });
    },
    clear(reply, name) {
      void reply.clearCookie(named(name), attributes);
    },
    makeRoom(request, reply, prefix, most) {
      const start = named(prefix);
      // Browsers send the older ones first (RFC 6265, section 5.4).
      const held = Object.keys(request.cookies).filter((name) => name.startsWith(start));
      const surplus = held.slice(0, Math.max(0, held.length + 1 - most));
      for (const name of surplus) jar.clear(reply, `${prefix}${name.slice(start.length)}`);
    },
  };
  return jar;
}
