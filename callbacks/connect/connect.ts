/**
 * The page behind a link. GET shows and does nothing, since scanners and previews fetch links; only a press acts.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type {} from '@fastify/formbody';
import { DEFAULT_ACCOUNT } from '../../src/engine/accounts.ts';
import { isRefusal, Refusal } from '../../src/errors.ts';
import { READ_BACK_MARGIN_MS } from '../../src/task/lifetime.ts';
import type { Asked } from '../../src/store/attempts.ts';
import type { Connection } from '../../src/store/records.ts';
import { satisfies } from '../../src/store/satisfaction.ts';
import { ATTEMPT_COOKIES, attemptCookie, MOST_ATTEMPT_COOKIES } from '../callback/binding.ts';
import type { CookieJar } from '../cookies.ts';
import { connectPage, type ConnectReason } from '../pages/connect.ts';
import { credentialPage } from '../pages/credential.ts';
import { donePage } from '../pages/done.ts';
import { leavingPage } from '../pages/leaving.ts';
import { signInPage } from '../pages/sign-in.ts';
import { texts } from '../texts.ts';
import { pathOf, type PageParts } from '../parts.ts';
import { sendOn, sendPage, sendRefusal } from '../reply.ts';
import { checkForm, csrfOf, type Session, type Sessions, type SignedIn } from '../session.ts';
import { shown } from '../pages/shown.ts';
import { readCredentialFields } from './credential-fields.ts';
import { findLink, requireFresh, requireOpen, requireOwner, requirePerson } from './asked.ts';
import { hashOf } from '../../src/engine/sign-ins.ts';

export function connectRoutes(parts: PageParts, jar: CookieJar, sessions: Sessions) {
  const { engine, ledger, providers } = parts;

  function signIn(
    reply: FastifyReply,
    session: Session,
    handle: string,
    why: 'nobody' | 'stale',
    asked: Asked,
  ): FastifyReply {
    const model = {
      site: parts.site,
      why,
      issuerHost: parts.issuer.host,
      form: target(session, `/sign-in?to=/connect/${handle}`),
      ...(session.person === null ? {} : { person: session.person.label }),
      // Nobody is known yet: how long the link lives says nothing about whose it is.
      link: { deadlineMs: asked.elicitation.deadlineMs, nowMs: asked.nowMs },
    };
    return sendPage(parts, reply, signInPage(model));
  }

  function target(session: Session, path: string) {
    return { path: pathOf(parts, path), csrf: csrfOf(session) };
  }

  /** Turns a refusal on the way to a page into the page that helps. */
  function help(
    request: FastifyRequest,
    reply: FastifyReply,
    session: Session,
    handle: string,
    asked: Asked | undefined,
    error: unknown,
  ): FastifyReply {
    if (asked !== undefined && isRefusal(error, 'person_unknown')) {
      return signIn(reply, session, handle, 'nobody', asked);
    }
    if (asked !== undefined && isRefusal(error, 'person_stale')) {
      return signIn(reply, session, handle, 'stale', asked);
    }
    const switchPerson = target(session, `/sign-in?to=/connect/${handle}`);
    const retry = target(session, `/connect/${handle}`);
    const provider = asked?.elicitation.provider;
    return sendRefusal(parts, request, reply, error, {
      ...(isRefusal(error, 'wrong_person') ? { switchPerson } : {}),
      ...(isRefusal(error, 'provider_unavailable') ? { retry } : {}),
      ...(provider != null && providers.has(provider)
        ? { providerName: providers.get(provider).displayName }
        : {}),
    });
  }

  async function connectionOf(asked: Asked): Promise<Connection> {
    const connection = await ledger.readConnection(asked.elicitation.connectionId ?? '');
    if (connection === undefined) throw new Refusal('link_unknown');
    return connection;
  }

  /** Whether nothing but the person's agreement for this client is missing (R11). */
  function onlyApproval(asked: Asked, connection: Connection): boolean {
    return satisfies(connection, asked.elicitation, true);
  }

  function reasonOf(asked: Asked, connection: Connection): ConnectReason {
    const account = connection.record?.subjectLabel ?? connection.record?.subject ?? connection.account;
    if (connection.generation === 0 || connection.record === null) {
      return connection.account === DEFAULT_ACCOUNT
        ? { kind: 'first' }
        : { kind: 'first', called: connection.account };
    }
    if (onlyApproval(asked, connection)) return { kind: 'approve-client', account };
    if (connection.status === 'active') return { kind: 'step-up', account };
    return { kind: 'signed-out', account, mayChange: true };
  }

  function show(
    reply: FastifyReply,
    session: Session,
    handle: string,
    asked: Asked,
    person: SignedIn,
    connection: Connection,
    errors: Readonly<Record<string, string>> = {},
  ): FastifyReply {
    const { elicitation, task, nowMs } = asked;
    const provider = providers.get(elicitation.provider ?? '');
    const tool = parts.tools.get(task?.tool ?? '');
    const base = {
      site: parts.site,
      nowMs,
      deadlineMs: elicitation.deadlineMs,
      form: target(session, `/connect/${handle}`),
      tool: tool?.title ?? tool?.name ?? task?.tool ?? '',
      person: person.label,
    };
    if (elicitation.kind === 'credential' && !onlyApproval(asked, connection)) {
      const { fields, helpUrl } = provider.credentialForm();
      const page = credentialPage({
        ...base,
        providerName: provider.displayName,
        fields: fields.map((field) => {
          const error = errors[field.name];
          return error === undefined ? field : { ...field, error };
        }),
        ...(helpUrl === undefined ? {} : { helpUrl }),
      });
      // RFC 9110, section 15.5.21.
      return sendPage(parts, reply, page, Object.keys(errors).length > 0 ? 422 : 200);
    }
    const had = new Set(connection.record?.scopes ?? []);
    return sendPage(
      parts,
      reply,
      connectPage({
        ...base,
        switchPerson: target(session, `/sign-in?to=/connect/${handle}`),
        client: {
          id: elicitation.clientId,
          ...(task?.clientName == null ? {} : { name: task.clientName }),
        },
        provider: { name: provider.displayName, host: provider.host },
        scopes: elicitation.scopes.map((name) => ({
          name,
          ...provider.scopeWords(name),
          isNew: connection.status === 'active' && had.size > 0 && !had.has(name),
        })),
        reason: reasonOf(asked, connection),
      }),
    );
  }

  return {
    /** `GET /connect/:handle`: shows. */
    async show(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const { handle } = request.params as { handle: string };
      const session = await sessions.read(request, reply);
      let asked: Asked | undefined;
      try {
        asked = await findLink(ledger, handle);
        const person = requirePerson(session);
        requireOwner(asked, person);
        requireOpen(asked);
        return show(reply, session, handle, asked, person, await connectionOf(asked));
      } catch (error) {
        return help(request, reply, session, handle, asked, error);
      }
    },

    /** `POST /connect/:handle`: acts. */
    async press(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const { handle } = request.params as { handle: string };
      const body = (request.body ?? {}) as Record<string, unknown>;
      const session = checkForm(request, await sessions.peek(request), body['csrf']);
      let asked: Asked | undefined;
      try {
        asked = await findLink(ledger, handle);
        const person = requirePerson(session);
        requireOwner(asked, person);
        requireOpen(asked);
        requireFresh(person, parts.wallMs());
        return await act(request, reply, session, handle, asked, person, body);
      } catch (error) {
        return help(request, reply, session, handle, asked, error);
      }
    },
  };

  async function act(
    request: FastifyRequest,
    reply: FastifyReply,
    session: Session,
    handle: string,
    asked: Asked,
    person: SignedIn,
    body: Record<string, unknown>,
  ): Promise<FastifyReply> {
    const connection = await connectionOf(asked);
    const providerName = providers.get(connection.provider).displayName;
    switch (body['action']) {
      case 'decline':
        // The link stays good: only the client's answer, or time, ends the wait.
        return sendPage(parts, reply, donePage({ site: parts.site, variant: 'declined', providerName }));
      case 'retry':
        return sendOn(parts, reply, pathOf(parts, `/connect/${handle}`));
      case 'approve':
      case 'continue': {
        if (onlyApproval(asked, connection)) {
          const { owner, clientId } = asked.elicitation;
          await ledger.approveClient(owner, connection.id, clientId);
          return sendPage(parts, reply, donePage({ site: parts.site, variant: 'approved', providerName }));
        }
        const departure = await engine.signIns.depart(asked, {
          sessionHash: hashOf(session.id),
          anyAccount: body['account'] === 'other',
          tenant: {},
        });
        // A little longer than the attempt: somebody who comes back too late is told so, not taken for a stranger.
        const lastsMs = departure.untilMs - asked.nowMs + READ_BACK_MARGIN_MS;
        jar.makeRoom(request, reply, ATTEMPT_COOKIES, MOST_ATTEMPT_COOKIES);
        jar.set(reply, attemptCookie(departure.attemptId), departure.binding.reveal(), lastsMs / 1000);
        const page = leavingPage({ site: parts.site, url: departure.authorizationUrl.href, providerName });
        return sendPage(parts, reply, page);
      }
      case 'save': {
        const { fields } = providers.get(connection.provider).credentialForm();
        const typed = readCredentialFields(fields, body);
        if ('errors' in typed) return show(reply, session, handle, asked, person, connection, typed.errors);
        const arrival = await engine.signIns.submitCredential(asked, typed.given, hashOf(session.id));
        if (arrival.reason === 'grant_dead') {
          const key = fields.find(({ name }) => name === 'key') ?? fields[0];
          const refused = texts.credential.fieldProblems.refused(shown(providerName));
          const errors = key === undefined ? {} : { [key.name]: refused };
          return show(reply, session, handle, asked, person, connection, errors);
        }
        if (arrival.reason !== 'granted') throw new Refusal(arrival.reason);
        return sendPage(parts, reply, donePage({ site: parts.site, variant: 'saved', providerName }));
      }
      default:
        throw new Refusal('form_forged');
    }
  }
}
