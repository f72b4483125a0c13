/** What became of an attempt, as the ledger recorded it: the page after a callback, and after its reload. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal, type Reason } from '../../src/errors.ts';
import { samePerson } from '../../src/elicitation/owner.ts';
import { hashOf } from '../../src/engine/sign-ins.ts';
import { linkHandle } from '../../src/vault/link-handle.ts';
import type { Attempt } from '../../src/store/records.ts';
import type { CookieJar } from '../cookies.ts';
import { donePage } from '../pages/done.ts';
import { pathOf, type PageParts } from '../parts.ts';
import { sendPage, sendRefusal } from '../reply.ts';
import { csrfOf, type Sessions } from '../session.ts';
import { attemptCookie } from './binding.ts';

export function outcomeRoutes(parts: PageParts, jar: CookieJar, sessions: Sessions) {
  const { ledger, providers, keyring } = parts;

  /** The attempt, for its person, or for the browser that holds its binding. */
  async function load(request: FastifyRequest, id: string): Promise<Attempt> {
    const attempt = await ledger.findAttemptById(id);
    if (attempt === undefined) throw new Refusal('link_unknown');
    const person = (await sessions.peek(request))?.person ?? null;
    if (person !== null && samePerson(person.owner, attempt.owner)) return attempt;
    const binding = jar.read(request, attemptCookie(attempt.id));
    if (binding !== undefined && hashOf(binding) === attempt.bindingHash) return attempt;
    throw new Refusal(person === null ? 'link_unknown' : 'wrong_person');
  }

  /** Where *Try again* leads: the page of the question that is open now. */
  async function retryPath(attempt: Attempt): Promise<string | undefined> {
    const again = attempt.outcome?.facts['again'];
    const asked = await ledger.findQuestion(typeof again === 'string' ? again : attempt.elicitationId);
    if (asked === undefined || asked.elicitation.handleKid === null) return undefined;
    if (asked.task?.status !== 'input_required' || asked.elicitation.finishedAtMs !== null) return undefined;
    const { handle } = await linkHandle(keyring, asked.elicitation.id, asked.elicitation.handleKid);
    return pathOf(parts, `/connect/${handle}`);
  }

  return {
    /** `GET /outcome/:id`. */
    async show(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const { id } = request.params as { id: string };
      const attempt = await load(request, id);
      const provider = providers.get(attempt.provider);
      const { outcome } = attempt;
      const session = await sessions.read(request, reply);
      // Decided: nothing is left that the cookie would guard.
      if (outcome !== null) jar.clear(reply, attemptCookie(attempt.id));
      if (outcome?.reason === 'granted') {
        const connection = await ledger.readConnection(attempt.connectionId);
        const account = connection?.record?.subjectLabel ?? undefined;
        const resumed = Number(outcome.facts['resumed'] ?? 0);
        const page = donePage({
          site: parts.site,
          variant: outcome.facts['ownTaskOver'] === true ? 'late' : 'connected',
          providerName: provider.displayName,
          ...(account === undefined ? {} : { account }),
          alsoWoken: Math.max(0, resumed - 1),
        });
        return sendPage(parts, reply, page);
      }
      const asked = await ledger.findQuestion(attempt.elicitationId);
      const path = await retryPath(attempt);
      const missing = outcome?.facts['missing'];
      const reason = outcome === null ? 'provider_unavailable' : (outcome.reason as Reason);
      const over = outcome?.facts['status'] === 'cancelled' ? { over: 'cancelled' } : { over: 'ended' };
      const facts = reason === 'link_over' ? over : {};
      return sendRefusal(parts, request, reply, new Refusal(reason, { facts }), {
        providerName: provider.displayName,
        missing: (Array.isArray(missing) ? missing : [])
          .filter((name) => typeof name === 'string')
          .map((name) => ({ name, ...provider.scopeWords(name) })),
        ...(path === undefined ? {} : { retry: { path, csrf: csrfOf(session) } }),
        ...(path === undefined || asked === undefined
          ? {}
          : { link: { deadlineMs: asked.elicitation.deadlineMs, nowMs: asked.nowMs } }),
      });
    },
  };
}
