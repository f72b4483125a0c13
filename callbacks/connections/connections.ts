/** *My connections*: what a person has connected, which clients use it, what waits for it; and its end (R5, R15). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type {} from '@fastify/formbody';
import { Refusal } from '../../src/errors.ts';
import type { Connection } from '../../src/store/records.ts';
import { connectionsPage } from '../pages/connections.ts';
import { disconnectPage } from '../pages/disconnect.ts';
import { signInPage } from '../pages/sign-in.ts';
import { pathOf, type PageParts } from '../parts.ts';
import { sendPage } from '../reply.ts';
import { checkForm, csrfOf, FRESH_MS, type Session, type Sessions, type SignedIn } from '../session.ts';

export function connectionsRoutes(parts: PageParts, sessions: Sessions) {
  const { engine, ledger, providers } = parts;

  function target(session: Session, path: string) {
    return { path: pathOf(parts, path), csrf: csrfOf(session) };
  }

  function signIn(reply: FastifyReply, session: Session, why: 'connections' | 'stale'): FastifyReply {
    const page = signInPage({
      site: parts.site,
      why,
      issuerHost: parts.issuer.host,
      form: target(session, '/sign-in?to=/connections'),
      ...(session.person === null ? {} : { person: session.person.label }),
    });
    return sendPage(parts, reply, page);
  }

  function named(connection: Connection): string {
    return providers.has(connection.provider)
      ? providers.get(connection.provider).displayName
      : connection.provider;
  }

  function accountOf(connection: Connection): { account?: string } {
    const label = connection.record?.subjectLabel ?? connection.record?.subject ?? null;
    return label === null ? {} : { account: label };
  }

  async function list(
    reply: FastifyReply,
    session: Session,
    person: SignedIn,
    notice?: { kind: 'disconnected' | 'forgotten'; providerName: string },
  ): Promise<FastifyReply> {
    const found = await ledger.listConnections(person.owner);
    const nowMs = await ledger.nowMs();
    const page = connectionsPage({
      site: parts.site,
      nowMs,
      person: person.label,
      form: target(session, '/connections'),
      switchPerson: target(session, '/sign-in?to=/connections'),
      connections: found
        .filter(({ connection }) => connection.status !== 'revoked')
        .map(({ connection, clients, waiting }) => ({
          id: connection.id,
          providerName: named(connection),
          ...accountOf(connection),
          status: connection.status,
          scopes: (connection.record?.scopes ?? []).map((name) => ({
            name,
            ...(providers.has(connection.provider)
              ? providers.get(connection.provider).scopeWords(name)
              : {}),
          })),
          createdAtMs: connection.createdAtMs,
          ...(connection.lastUsedAtMs === null ? {} : { lastUsedMs: connection.lastUsedAtMs }),
          clients,
          waiting: waiting.map(({ tool, deadlineMs }) => ({
            title: parts.tools.get(tool)?.title ?? tool,
            deadlineMs,
          })),
        })),
      ...(notice === undefined ? {} : { notice }),
    });
    return sendPage(parts, reply, page);
  }

  return {
    /** `GET /connections`. */
    async show(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const session = await sessions.read(request, reply);
      if (session.person === null) return signIn(reply, session, 'connections');
      return list(reply, session, session.person);
    },

    /** `POST /connections`: asks before it ends a connection, then ends it. */
    async press(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const body = (request.body ?? {}) as Record<string, unknown>;
      const session = checkForm(request, await sessions.peek(request), body['csrf']);
      const { person } = session;
      if (person === null) return signIn(reply, session, 'connections');
      if (parts.wallMs() - person.atMs > FRESH_MS) return signIn(reply, session, 'stale');
      const found = await ledger.listConnections(person.owner);
      const chosen = found.find(({ connection }) => connection.id === body['connection']);
      // Somebody else's and unknown ones look the same.
      if (chosen === undefined) throw new Refusal('link_unknown');
      const { connection } = chosen;
      switch (body['action']) {
        case 'disconnect': {
          const page = disconnectPage({
            site: parts.site,
            form: target(session, '/connections'),
            connectionId: connection.id,
            providerName: named(connection),
            ...accountOf(connection),
            ending: (await engine.offBoarding.endsAlone(connection)) ? 'revoke' : 'forget',
            waiting: chosen.waiting.map(({ tool }) => parts.tools.get(tool)?.title ?? tool),
            backPath: pathOf(parts, '/connections'),
          });
          return sendPage(parts, reply, page);
        }
        case 'confirm-disconnect': {
          const farewell = await engine.offBoarding.disconnect(person.owner, connection.id);
          const kind = farewell === 'revoked' ? 'disconnected' : 'forgotten';
          return list(reply, session, person, { kind, providerName: named(connection) });
        }
        default:
          throw new Refusal('form_forged');
      }
    },
  };
}
