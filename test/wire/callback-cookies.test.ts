/** Cookies of the pages on https and on plain loopback. */
import { randomBytes } from 'node:crypto';
import cookie from '@fastify/cookie';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { cookieJar } from '../../callbacks/cookies.ts';
import { checkForm, csrfOf, openSessions, type Session } from '../../callbacks/session.ts';
import { isRefusal } from '../../src/errors.ts';
import { openKeyring } from '../../src/vault/keyring.ts';

let app: FastifyInstance;
let nowMs = 1_000_000;

afterEach(async () => {
  await app.close();
});

/** A server that signs in at `/in`, out of `/out` says who is there, and checks a form at `/form`. */
async function serve(publicUrl: string): Promise<void> {
  const keyring = await openKeyring([{ kid: 'k1', bytes: randomBytes(32) }]);
  const jar = cookieJar(publicUrl);
  const sessions = openSessions(keyring, jar, () => nowMs);
  app = fastify();
  await app.register(cookie);
  app.get('/in', async (_request, reply) => {
    const session = await sessions.rotate(reply, { owner: 'o', label: 'Alice', atMs: nowMs });
    return { csrf: csrfOf(session) };
  });
  app.get('/out', async (request): Promise<{ session: Session | null }> => {
    return { session: (await sessions.peek(request)) ?? null };
  });
  app.post('/form', async (request, reply) => {
    try {
      checkForm(request, await sessions.peek(request), (request.query as { csrf?: string }).csrf);
      return { kind: 'taken' };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return reply.code(403).send({ kind: error.reason });
    }
  });
}

async function signIn(): Promise<{ line: string; pair: string; csrf: string }> {
  const answer = await app.inject('/in');
  const line = String(answer.headers['set-cookie']);
  return { line, pair: line.split(';')[0] ?? '', csrf: answer.json<{ csrf: string }>().csrf };
}

async function person(pair: string): Promise<string | undefined> {
  const answer = await app.inject({ url: '/out', headers: { cookie: pair } });
  return answer.json<{ session: Session | null }>().session?.person?.label;
}

describe('a session cookie', () => {
  test('on https is __Host-, Secure, HttpOnly, Lax, of the whole host and of no other', async () => {
    await serve('https://keyturn.example/under/a/prefix');
    const { line } = await signIn();
    expect(line).toMatch(/^__Host-keyturn_session=/);
    for (const part of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax'])
      expect(line.split('; ')).toContain(part);
    expect(line).not.toMatch(/domain=/i);
  });

  test('on plain loopback has no prefix and is not Secure, and is HttpOnly and Lax', async () => {
    await serve('http://localhost:3000');
    const { line } = await signIn();
    expect(line).toMatch(/^keyturn_session=/);
    expect(line).not.toMatch(/secure/i);
    for (const part of ['Path=/', 'HttpOnly', 'SameSite=Lax']) expect(line.split('; ')).toContain(part);
  });

  test('without its prefix is not read on https', async () => {
    await serve('https://keyturn.example');
    const { pair } = await signIn();
    expect(await person(pair)).toBe('Alice');
    expect(await person(pair.replace('__Host-', ''))).toBeUndefined();
  });

  test('that was changed anywhere is nobody’s', async () => {
    await serve('https://keyturn.example');
    const { pair } = await signIn();
    const start = pair.indexOf('=') + 1;
    for (let at = start; at < pair.length; at += 7) {
      const other = pair[at] === 'A' ? 'B' : 'A';
      expect(await person(`${pair.slice(0, at)}${other}${pair.slice(at + 1)}`)).toBeUndefined();
    }
  });

  test('ends after eight hours', async () => {
    await serve('https://keyturn.example');
    const { pair } = await signIn();
    nowMs += 8 * 3_600_000 - 1;
    expect(await person(pair)).toBe('Alice');
    nowMs += 1;
    expect(await person(pair)).toBeUndefined();
  });

  test('of another server opens nothing', async () => {
    await serve('https://keyturn.example');
    const { pair } = await signIn();
    await app.close();
    await serve('https://keyturn.example');
    expect(await person(pair)).toBeUndefined();
  });
});

describe('a form', () => {
  test.each([
    ['same-origin', 200],
    [undefined, 200],
    ['same-site', 403],
    ['cross-site', 403],
    ['none', 403],
  ])('sent from %s is answered with %i', async (site, status) => {
    await serve('https://keyturn.example');
    const { pair, csrf } = await signIn();
    const headers = { cookie: pair, ...(site === undefined ? {} : { 'sec-fetch-site': site }) };
    expect((await app.inject({ method: 'POST', url: `/form?csrf=${csrf}`, headers })).statusCode).toBe(
      status,
    );
    const foreign = (await signIn()).csrf;
    expect((await app.inject({ method: 'POST', url: `/form?csrf=${foreign}`, headers })).statusCode).toBe(
      403,
    );
  });
});
