/**
 * The browser's session: sealed in a cookie, so that a visitor creates no row (R29). Anonymous until a sign-in, which
 * makes a new one (R9). Its id is what the CSRF field is made from.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../src/errors.ts';
import type { Keyring } from '../src/vault/keyring.ts';
import { openValue, sealValue } from '../src/vault/sealed-value.ts';
import type { CookieJar } from './cookies.ts';

/** A browser's session. */
export interface Session {
  readonly id: string;
  /** Nobody is signed in when null. */
  readonly person: SignedIn | null;
}

/** Who is signed in in a browser. */
export interface SignedIn {
  /** `ownerOf(person)`, from the configured issuer and claim (R10). */
  readonly owner: string;
  /** What the issuer calls the person; shown to nobody else. */
  readonly label: string;
  /** When the person signed in here. */
  readonly atMs: number;
}

const NAME = 'keyturn_session';
const LASTS_MS = 8 * 3_600_000;
/** *Continue* wants a sign-in that is younger than this (R9). */
export const FRESH_MS = 10 * 60_000;

export interface Sessions {
  /** The session of a request; a new anonymous one, with its cookie set, when there is none that opens. */
  read(request: FastifyRequest, reply: FastifyReply): Promise<Session>;
  /** The person of a request, if any, without touching cookies. */
  peek(request: FastifyRequest): Promise<Session | undefined>;
  /** Signs a person in: always a new session. */
  rotate(reply: FastifyReply, person: SignedIn | null): Promise<Session>;
}

export function openSessions(keyring: Keyring, jar: CookieJar, wallMs: () => number): Sessions {
  async function write(reply: FastifyReply, session: Session): Promise<Session> {
    const sealed = await sealValue(
      keyring,
      'cookies',
      { id: session.id, person: session.person === null ? null : { ...session.person } },
      { expiresAtMs: wallMs() + LASTS_MS, context: ['session'] },
    );
    jar.set(reply, NAME, sealed, LASTS_MS / 1000);
    return session;
  }

  async function peek(request: FastifyRequest): Promise<Session | undefined> {
    const sealed = jar.read(request, NAME);
    if (sealed === undefined) return undefined;
    const opened = await openValue(keyring, 'cookies', sealed, { nowMs: wallMs(), context: ['session'] });
    return opened as Session | undefined;
  }

  return {
    peek,
    read: async (request, reply) =>
      (await peek(request)) ??
      (await write(reply, { id: randomBytes(18).toString('base64url'), person: null })),
    rotate: (reply, person) => write(reply, { id: randomBytes(18).toString('base64url'), person }),
  };
}

/** Value of the `csrf` field of forms in a session. */
export function csrfOf(session: Session): string {
  return createHash('sha256').update(`csrf ${session.id}`).digest('base64url');
}

/**
 * Refuses a form that was not sent from our own page in this session.
 *
 * `Origin` is no help: with `no-referrer` a browser sends `null` with our own forms. `Sec-Fetch-Site` is, where sent.
 *
 * @throws Refusal `form_forged`.
 */
export function checkForm(request: FastifyRequest, session: Session | undefined, csrf: unknown): Session {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') throw new Refusal('form_forged');
  if (session === undefined || typeof csrf !== 'string') throw new Refusal('form_forged');
  const wanted = Buffer.from(csrfOf(session));
  const given = Buffer.from(csrf);
  if (wanted.length !== given.length || !timingSafeEqual(wanted, given)) throw new Refusal('form_forged');
  return session;
}
