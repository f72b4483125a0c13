/** How a page leaves: with its security headers, never with a body that a cache keeps. */
import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRefusal, type Refusal } from '../src/errors.ts';
import { refusedPage, refusedStatus, refusedVariant, type RefusedModel } from './pages/refused.ts';
import type { PageParts } from './parts.ts';
import { securityHeaders } from './security-headers.ts';

/** Sends a page. */
export function sendPage(parts: PageParts, reply: FastifyReply, html: string, status = 200): FastifyReply {
  return reply
    .code(status)
    .headers(securityHeaders(parts.publicUrl.startsWith('https:')))
    .send(html);
}

/** Sends the browser on, by GET, to a path of ours. */
export function sendOn(parts: PageParts, reply: FastifyReply, path: string): FastifyReply {
  return reply
    .headers(securityHeaders(parts.publicUrl.startsWith('https:')))
    .code(303)
    .header('location', path)
    .send('');
}

/** What a refusal page may say beyond its reason. */
export type Known = Partial<Omit<RefusedModel, 'site' | 'variant' | 'eventId'>>;

/**
 * Status of what the server in front of the handlers refused: a form too large, a body that cannot be read. Undefined
 * for everything else.
 */
function requestFault(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : undefined;
}

/** Sends the page of a refusal; anything else is a bug, and its page says so with a number for the operator. */
export function sendRefusal(
  parts: PageParts,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
  known: Known = {},
): FastifyReply {
  const eventId = randomBytes(6).toString('hex');
  const fault = requestFault(error);
  if (fault !== undefined) {
    parts.meter.count('refusal', { reason: 'form_forged' });
    parts.log.info('page.refused', { eventId, route: request.routeOptions.url, status: fault });
    const page = refusedPage({ site: parts.site, variant: 'form-forged', eventId });
    return sendPage(parts, reply, page, fault);
  }
  if (!isRefusal(error)) {
    parts.log.error('page.failed', { eventId, route: request.routeOptions.url, error });
    const page = refusedPage({ site: parts.site, variant: 'internal', eventId });
    return sendPage(parts, reply, page, 500);
  }
  return refuse(parts, request, reply, error, eventId, known);
}

function refuse(
  parts: PageParts,
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: Refusal,
  eventId: string,
  known: Known,
): FastifyReply {
  const variant = refusedVariant(refusal.reason, refusal.facts);
  parts.meter.count('refusal', { reason: refusal.reason });
  parts.log.info('page.refused', { eventId, route: request.routeOptions.url, reason: refusal.reason });
  const page = refusedPage({ site: parts.site, variant, eventId, ...known });
  return sendPage(parts, reply, page, refusedStatus(variant));
}
