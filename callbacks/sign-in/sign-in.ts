/**
 * Sign-in of the person at this server's issuer. Starts by POST, so that nothing but a press starts it; returns only
 * to the path that it started from; ends in a new session (R9).
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type {} from '@fastify/formbody';
import { randomBytes } from 'node:crypto';
import { Refusal } from '../../src/errors.ts';
import { openValue, sealValue } from '../../src/vault/sealed-value.ts';
import type { CookieJar } from '../cookies.ts';
import { leavingPage } from '../pages/leaving.ts';
import { pathOf, type PageParts } from '../parts.ts';
import { sendOn, sendPage } from '../reply.ts';
import { checkForm, type Sessions } from '../session.ts';
import type { PendingSignIn } from './issuer-client.ts';

const COOKIES = 'keyturn_signin_';
/** Sign-ins that a browser may have under way: each is half a kilobyte in every request. */
const MOST_COOKIES = 6;
const LASTS_MS = 10 * 60_000;
/** Paths that a sign-in may start from and return to: ours, without a query. */
const RETURN_PATHS = /^\/(?:connect\/[\w-]{16,128}|connections|outcome\/[\w-]{8,64})$/;

export function signInRoutes(parts: PageParts, jar: CookieJar, sessions: Sessions) {
  /** One pending sign-in per cookie, named by its state: two tabs do not overwrite each other. */
  function cookieOf(state: string): string {
    return `${COOKIES}${state.slice(0, 16)}`;
  }

  return {
    /** `POST /sign-in?to=<path>`: to the issuer. */
    async start(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const body = (request.body ?? {}) as Record<string, unknown>;
      const session = checkForm(request, await sessions.peek(request), body['csrf']);
      const { to } = request.query as { to?: unknown };
      if (typeof to !== 'string' || !RETURN_PATHS.test(to)) throw new Refusal('form_forged');
      const fresh = body['action'] === 'switch-person' || session.person !== null;
      const { url, pending } = await parts.issuer.begin(to, fresh);
      const sealed = await sealValue(
        parts.keyring,
        'cookies',
        { ...pending },
        { expiresAtMs: parts.wallMs() + LASTS_MS, context: ['sign-in'] },
      );
      jar.makeRoom(request, reply, COOKIES, MOST_COOKIES);
      jar.set(reply, cookieOf(pending.state), sealed, LASTS_MS / 1000);
      const page = leavingPage({ site: parts.site, url: url.href, providerName: parts.site.serverName });
      return sendPage(parts, reply, page);
    },

    /** `GET /sign-in/return`: back from the issuer. */
    async finish(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const query = new URL(request.url, parts.publicUrl).searchParams;
      const states = query.getAll('state');
      const [state] = states;
      if (state === undefined) throw new Refusal('state_missing');
      if (states.length > 1 || query.getAll('code').length > 1) throw new Refusal('state_repeated');
      const sealed = jar.read(request, cookieOf(state));
      if (sealed === undefined) throw new Refusal('state_unknown');
      const opened = await openValue(parts.keyring, 'cookies', sealed, {
        nowMs: parts.wallMs(),
        context: ['sign-in'],
      });
      const pending = opened as unknown as PendingSignIn | undefined;
      if (pending === undefined || pending.state !== state) throw new Refusal('state_unknown');
      // Spent, whatever comes of it.
      jar.clear(reply, cookieOf(state));
      const person = await parts.issuer.finish(query, pending);
      await sessions.rotate(reply, { ...person, atMs: parts.wallMs() });
      await parts.ledger.recordEvent({
        event: 'person.signed in',
        owner: person.owner,
        outcome: 'signed in',
      });
      parts.log.info('person.signed in', { visit: randomBytes(4).toString('hex') });
      return sendOn(parts, reply, pathOf(parts, pending.returnTo));
    },
  };
}
