/** Between Fastify and the web-standard requests and responses of the SDK. Knows nothing of MCP but its headers. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { LegacyInput } from '../endpoint.ts';
import type { Exchange } from './call.ts';
import type { Deliveries, Note } from './deliveries.ts';

/** Request headers that the transport reads; the access token is not among them. */
const PASSED_ON = ['accept', 'content-type', 'mcp-session-id', 'mcp-protocol-version', 'last-event-id'];

/** One header, or undefined; a repeated one is joined as HTTP joins it (RFC 9110, section 5.3). */
export function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** The request as the SDK wants it. Its address decides nothing (D14). */
export function webRequest(request: FastifyRequest): Request {
  const headers = new Headers();
  for (const name of PASSED_ON) {
    const value = headerOf(request, name);
    if (value !== undefined) headers.set(name, value);
  }
  return new Request('http://localhost/', { method: request.method, headers });
}

/** The exchange behind a request and its reply. */
export function openExchange(
  { request, reply, caller }: Omit<LegacyInput, 'body'>,
  deliveries: Deliveries,
  shared: boolean,
): Exchange {
  const gone = new AbortController();
  const notes: Note[] = [];
  reply.raw.once('close', () => {
    if (reply.raw.writableFinished) deliveries.sent(request.raw.socket, notes);
    gone.abort();
  });
  return {
    caller,
    gone: gone.signal,
    idempotencyKey: headerOf(request, 'idempotency-key'),
    shared,
    whenDelivered: (note) => notes.push(note),
  };
}

const OPENING = new TextEncoder().encode(': open\n\n');

/** Puts a comment before a stream of events, so that the headers leave at once and not with the first event. */
function opened(events: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  return events.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({ start: (controller) => controller.enqueue(OPENING) }),
  );
}

/** Sends the response of the SDK. */
export function sendResponse(reply: FastifyReply, response: Response): void {
  reply.code(response.status);
  for (const [name, value] of response.headers) {
    // One connection serves many requests; what becomes of it is not for a response to say.
    if (name !== 'connection') reply.header(name, value);
  }
  const { body } = response;
  const events = response.headers.get('content-type') === 'text/event-stream';
  void reply.send(body === null ? null : events ? opened(body) : body);
}
