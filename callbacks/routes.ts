/**
 * What a person's browser visits: the list of routes. Everything shows by GET and acts by POST, except the two ways
 * back from another site, which are GET by their standard and act on single-use state.
 */
import cookie from '@fastify/cookie';
import formbody from '@fastify/formbody';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Refusal } from '../src/errors.ts';
import { callbackRoutes } from './callback/callback.ts';
import { outcomeRoutes } from './callback/outcome.ts';
import { connectRoutes } from './connect/connect.ts';
import { connectionsRoutes } from './connections/connections.ts';
import { cookieJar } from './cookies.ts';
import { homePage } from './pages/home.ts';
import { refusedPage } from './pages/refused.ts';
import type { PageParts } from './parts.ts';
import { sendPage, sendRefusal } from './reply.ts';
import { openSessions } from './session.ts';
import { signInRoutes } from './sign-in/sign-in.ts';

/** Longest form that is read, in bytes. */
const MOST_FORM_BYTES = 131_072;

/** A browser needs `Retry-After` and nothing else of a limit. */
const QUIET = { 'x-ratelimit-limit': false, 'x-ratelimit-remaining': false, 'x-ratelimit-reset': false };

const NOT_GET = ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function refuseMethod(parts: PageParts, reply: FastifyReply): FastifyReply {
  const page = refusedPage({ site: parts.site, variant: 'answer-unknown' });
  return sendPage(parts, reply.header('allow', 'GET'), page, 405);
}

/** Mounts the pages. Register it in a scope of its own: its parsers and error pages are for browsers only. */
export async function mountPages(app: FastifyInstance, parts: PageParts): Promise<void> {
  const jar = cookieJar(parts.publicUrl);
  const sessions = openSessions(parts.keyring, jar, parts.wallMs);
  const connect = connectRoutes(parts, jar, sessions);
  const callback = callbackRoutes(parts, jar, sessions);
  const outcome = outcomeRoutes(parts, jar, sessions);
  const signIn = signInRoutes(parts, jar, sessions);
  const connections = connectionsRoutes(parts, sessions);

  await app.register(rateLimit, {
    max: parts.pagesPerMinute,
    timeWindow: '1 minute',
    // What it returns is thrown, and so becomes the page of the refusal.
    errorResponseBuilder: (_request, { ttl }) =>
      new Refusal('too_many_requests', { facts: { retryAfterMs: ttl } }),
    addHeaders: QUIET,
    addHeadersOnExceeding: QUIET,
  });
  await app.register(cookie);
  await app.register(formbody, { bodyLimit: MOST_FORM_BYTES });
  app.setErrorHandler((error, request, reply) => sendRefusal(parts, request, reply, error));

  app.get('/', (_request, reply) =>
    sendPage(parts, reply, homePage({ site: parts.site, mcpUrl: parts.mcpUrl })),
  );
  app.get('/connect/:handle', (request, reply) => connect.show(request, reply));
  app.post('/connect/:handle', (request, reply) => connect.press(request, reply));
  app.get('/outcome/:id', (request, reply) => outcome.show(request, reply));
  app.post('/sign-in', (request, reply) => signIn.start(request, reply));
  app.get('/connections', (request, reply) => connections.show(request, reply));
  app.post('/connections', (request, reply) => connections.press(request, reply));

  // The ways back act, so that HEAD, which must not, is not answered for them either (R14; RFC 9110, section 15.5.6).
  const getOnly = { exposeHeadRoute: false };
  app.get('/callback/:provider', getOnly, (request, reply) => callback.receive(request, reply));
  app.get('/sign-in/return', getOnly, (request, reply) => signIn.finish(request, reply));
  for (const url of ['/callback/:provider', '/sign-in/return']) {
    app.route({ method: NOT_GET, url, handler: (_request, reply) => refuseMethod(parts, reply) });
  }
}
