/**
 * The authorization response of a provider (RFC 6749, section 4.1.2). GET only (R14). The checks, in order; a bad
 * response changes nothing, and an error response passes the same steps as a good one (R12):
 *
 * 1. `readOnce`: one state, nothing repeated.
 * 2. `loadAttempt`: the attempt of this state, looked up by its hash, at the provider of this redirect URI.
 * 3. `checkBinding`: the browser that pressed *Continue*. Once nothing can come of the attempt any more, its person
 *    is enough: they are shown what became of it.
 * 4. `checkPerson`: not somebody else by now.
 * 5. `checkIssuer`: the issuer that was asked (RFC 9207), before the code is sent anywhere.
 * 6. `arrive`: deadline, take exactly once, exchange, account, scopes, seal, commit.
 * 7. On to a page whose address has no code in it, also where the exchange was refused.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRefusal, Refusal } from '../../src/errors.ts';
import { samePerson } from '../../src/elicitation/owner.ts';
import { hashOf } from '../../src/engine/sign-ins.ts';
import type { ResponseCheck } from '../../src/provider/authorization-response.ts';
import type { Attempt } from '../../src/store/records.ts';
import type { CookieJar } from '../cookies.ts';
import { pathOf, type PageParts } from '../parts.ts';
import { sendOn } from '../reply.ts';
import type { Sessions } from '../session.ts';
import { attemptCookie } from './binding.ts';

/** Longest query that is looked at, in characters. */
const MOST_QUERY = 16_384;

export function callbackRoutes(parts: PageParts, jar: CookieJar, sessions: Sessions) {
  const { engine, ledger, providers } = parts;

  function readOnce(request: FastifyRequest): { state: string; query: URLSearchParams } {
    if (request.url.length > MOST_QUERY) throw new Refusal('response_malformed');
    const query = new URL(request.url, parts.publicUrl).searchParams;
    const [state, ...more] = query.getAll('state');
    if (state === undefined || state === '') throw new Refusal('state_missing');
    if (more.length > 0) throw new Refusal('state_repeated');
    return { state, query };
  }

  async function loadAttempt(provider: string, state: string): Promise<Attempt> {
    const attempt = await ledger.findAttempt(hashOf(state));
    if (attempt === undefined || attempt.provider !== provider || !providers.has(provider)) {
      throw new Refusal('state_unknown');
    }
    return attempt;
  }

  async function checkBinding(request: FastifyRequest, attempt: Attempt): Promise<void> {
    const binding = jar.read(request, attemptCookie(attempt.id));
    if (binding !== undefined && hashOf(binding) === attempt.bindingHash) return;
    // The cookie ends with the attempt. Somebody who comes late or comes back is told so, not sent to another browser.
    const isOver = attempt.outcome !== null || (await ledger.nowMs()) >= attempt.deadlineMs;
    const person = (await sessions.peek(request))?.person ?? null;
    if (isOver && person !== null && samePerson(person.owner, attempt.owner)) return;
    throw new Refusal('binding_missing');
  }

  async function checkPerson(request: FastifyRequest, attempt: Attempt): Promise<void> {
    // A session that merely ended while the person was at the provider does not refuse; somebody else's does.
    const person = (await sessions.peek(request))?.person ?? null;
    if (person !== null && !samePerson(person.owner, attempt.owner)) throw new Refusal('wrong_person');
  }

  function checkIssuer(attempt: Attempt, query: URLSearchParams): Promise<ResponseCheck> {
    return providers.get(attempt.provider).checkResponse(query, { issuer: attempt.issuer });
  }

  return {
    /** `GET /callback/:provider`. */
    async receive(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const { provider } = request.params as { provider: string };
      const { state, query } = readOnce(request);
      const attempt = await loadAttempt(provider, state);
      await checkBinding(request, attempt);
      await checkPerson(request, attempt);
      const response = await checkIssuer(attempt, query);
      try {
        await engine.signIns.arrive(attempt, response, query);
      } catch (error) {
        if (!isRefusal(error, 'provider_unavailable')) throw error;
        // Not decided yet: the outcome's page says so, and after a reload what became of it.
        parts.log.warn('callback.undecided', { provider, taskId: attempt.taskId, error });
      }
      return sendOn(parts, reply, pathOf(parts, `/outcome/${attempt.id}`));
    },
  };
}
