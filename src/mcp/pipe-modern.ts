/**
 * Revision 2026-07-28 over a pipe: each message goes to the same face as over HTTP, without a socket, and what would
 * have been the body of the answer goes back through the pipe. So both transports obey one set of rules.
 */
import type { ServerResponse } from 'node:http';
import Fastify from 'fastify';
import type { Caller } from '../engine/caller.ts';
import type { Catalogue } from './catalogue.ts';
import type { ModernFace } from './endpoint.ts';
import { readMessage, type RpcId, type RpcMessage } from './json-rpc.ts';
import { mirrorHeaders } from './mirror-headers.ts';

/** A message of this revision that a pipe may carry to the server. */
export type ModernMessage = Exclude<RpcMessage, { kind: 'response' }>;

/** The modern half of a pipe. */
export interface ModernPipe {
  /** Answers a message. Resolves when everything that belongs to it has been written. */
  take(message: ModernMessage, body: unknown): Promise<void>;
  /** Ends a request that is being answered, as a lost connection would; false when there is none of this id. */
  cancel(id: RpcId): boolean;
  close(): Promise<void>;
}

/**
 * Opens it.
 *
 * @param write takes one JSON text without line breaks.
 */
export async function openModernPipe(options: {
  readonly face: ModernFace;
  readonly catalogue: Catalogue;
  readonly caller: Caller;
  readonly write: (text: string) => Promise<void>;
}): Promise<ModernPipe> {
  const { face, catalogue, caller, write } = options;
  const open = new Map<RpcId, ServerResponse>();
  const app = Fastify({ logger: false });
  app.post('/', async (request, reply) => {
    const message = readMessage(request.body);
    if (message.kind === 'malformed' || message.kind === 'response') return reply.code(400).send();
    if (message.kind === 'request') open.set(message.id, reply.raw);
    await face.handle({ request, reply, caller, message });
    return reply;
  });
  await app.ready();

  return {
    async take(message, body) {
      if (message.kind === 'request' && open.has(message.id)) return;
      try {
        const response = await app.inject({
          method: 'POST',
          url: '/',
          headers: { ...mirrorHeaders(catalogue, message), 'content-type': 'application/json' },
          payload: JSON.stringify(body),
          payloadAsStream: true,
        });
        const type = String(response.headers['content-type'] ?? '');
        const text = response.stream().setEncoding('utf8') as AsyncIterable<string>;
        if (type.startsWith('text/event-stream')) await writeEvents(text, write);
        else await writeWhole(text, write);
      } catch {
        // Cancelled: a request whose client does not wait for it has no answer.
      } finally {
        if (message.kind === 'request') open.delete(message.id);
      }
    },

    cancel(id) {
      const response = open.get(id);
      response?.destroy();
      return response !== undefined;
    },

    async close() {
      for (const response of open.values()) response.destroy();
      await app.close();
    },
  };
}

async function writeWhole(
  chunks: AsyncIterable<string>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  if (text !== '') await write(text);
}

async function writeEvents(
  chunks: AsyncIterable<string>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  let text = '';
  for await (const chunk of chunks) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = text
        .slice(0, end)
        .split('\n')
        .find((line) => line.startsWith('data: '));
      text = text.slice(end + 2);
      if (data !== undefined) await write(data.slice('data: '.length));
    }
  }
}
