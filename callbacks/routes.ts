/**
 * What a person's browser visits: the list of routes. Everything shows by GET and acts by POST, except the two ways
 * back from another site, which are GET by their standard and act on single-use state.
 */
import cookie from '@fastify/cookie';
import formbody from '@fastify/formbody';
import type { FastifyInstance } from 'fastify';
import { callbackRoutes } from './callback/callback.ts';
import { outcomeRoutes } from './callback/outcome.ts';
import { connectRoutes } from './connect/connect.ts';
import { connectionsRoutes } from './connections/connections.ts';
import { cookieJar } from './cookies.ts';
import { homePage } from './pages/home.ts';
import type { PageParts } from './parts.ts';
import { sendPage, sendRefusal } from './reply.ts';
import { openSessions } from './session.ts';
import { signInRoutes } from './sign-in/sign-in.ts';

/** Longest form that is read, in bytes. */
const MOST_FORM_BYTES = 131_072;

/** Mounts the pages. Register it in a scope of its own: its parsers and error pages are for browsers only. */
export async function mountPages(app: FastifyInstance, parts: PageParts): Promise<void> {
  const jar = cookieJar(parts.publicUrl);
  const sessions = openSessions(parts.keyring, jar, parts.wallMs);
  const connect = connectRoutes(parts, jar, sessions);
  const callback = callbackRoutes(parts, jar, sessions);
  const outcome = outcomeRoutes(parts, jar, sessions);
  const signIn = signInRoutes(parts, jar, sessions);
  const connections = connectionsRoutes(parts, sessions);

  await app.register(cookie);
  await app.register(formbody, { bodyLimit: MOST_FORM_BYTES });
  app.setErrorHandler((error, request, reply) => sendRefusal(parts, request, reply, error));

  app.get('/', (_request, reply) =>
    sendPage(parts, reply, homePage({ site: parts.site, mcpUrl: parts.mcpUrl })),
  );
  app.get('/connect/:handle', (request, reply) => connect.show(request, reply));
  app.post('/connect/:handle', (request, reply) => connect.press(request, reply));
  app.get('/callback/:provider', (request, reply) => callback.receive(request, reply));
  app.get('/outcome/:id', (request, reply) => outcome.show(request, reply));
  app.post('/sign-in', (request, reply) => signIn.start(request, reply));
  app.get('/sign-in/return', (request, reply) => signIn.finish(request, reply));
  app.get('/connections', (request, reply) => connections.show(request, reply));
  app.post('/connections', (request, reply) => connections.press(request, reply));
}
