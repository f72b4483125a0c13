/**
 * The revisions with a handshake over a pipe: one session, for one local person. The same handlers as over HTTP; only
 * sessions, streams and acknowledgements of answers do not exist here.
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Caller } from '../../engine/caller.ts';
import { INVALID_REQUEST, isObject } from '../json-rpc.ts';
import { isResponse, takeAnswer } from './answers.ts';
import type { Exchange } from './call.ts';
import { readClient, type Client } from './client.ts';
import type { Note } from './deliveries.ts';
import { openFirstQuestions } from './first-questions.ts';
import { openFollowed } from './followed.ts';
import { openGiven } from './given.ts';
import { ignoreTask } from './ignore-task.ts';
import { legacyParts, type LegacyOptions, type LegacyParts } from './parts.ts';
import { buildServer, sendMessage } from './server.ts';
import type { SessionState } from './session-state.ts';

/** The handshake half of a pipe. */
export interface HandshakePipe {
  /** Takes a message: a request, a notification or a response. Answers are written when they are there. */
  take(message: unknown): Promise<void>;
  close(): Promise<void>;
}

interface Pipe {
  readonly client: Client;
  readonly state: SessionState;
  readonly transport: Transport;
  close(): Promise<void>;
}

/**
 * Opens it. Nothing but `initialize` and `ping` is answered before `initialize`.
 *
 * @param write takes one JSON text without line breaks.
 * @throws Refusal `configuration_invalid`.
 */
export function openHandshakePipe(
  options: LegacyOptions,
  caller: Caller,
  write: (text: string) => Promise<void>,
): HandshakePipe {
  const parts = legacyParts(options);
  let pipe: Pipe | undefined;

  async function refuse(message: unknown, words: string): Promise<void> {
    if (!isObject(message) || message['id'] === undefined) return;
    const error = { code: INVALID_REQUEST, message: words };
    await write(JSON.stringify({ jsonrpc: '2.0', id: message['id'], error }));
  }

  return {
    async take(message) {
      if (isObject(message) && message['method'] === 'initialize') {
        if (pipe !== undefined) return await refuse(message, 'The session is already initialized');
        const client = readClient(message['params']);
        pipe = await openPipe(parts, caller, client, write);
        const params = { ...(message['params'] as object), protocolVersion: client.revision };
        message = { ...message, params };
      }
      if (pipe === undefined) {
        if (isObject(message) && message['method'] === 'ping') {
          return await write(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: {} }));
        }
        return await refuse(message, 'initialize comes first');
      }
      if (isResponse(message)) {
        const taken = await takeAnswer(parts, caller, pipe.state.first, message);
        if (taken === 'unknown') parts.log.info('mcp.answer ignored', { why: 'unknown' });
        return undefined;
      }
      pipe.transport.onmessage?.(ignoreTask(pipe.client, message) as JSONRPCMessage);
      return undefined;
    },

    close: async () => await pipe?.close(),
  };
}

async function openPipe(
  parts: LegacyParts,
  caller: Caller,
  client: Client,
  write: (text: string) => Promise<void>,
): Promise<Pipe> {
  const gone = new AbortController();
  const notes = new Map<string | number, Note[]>();
  const transport: Transport = {
    start: () => Promise.resolve(),
    async send(message) {
      await write(JSON.stringify(message));
      if ('method' in message || message.id === undefined) return;
      // A pipe to a process on the same machine: what was written has arrived.
      const due = notes.get(message.id) ?? [];
      notes.delete(message.id);
      await Promise.allSettled(due.map((note) => note.write()));
    },
    close() {
      transport.onclose?.();
      return Promise.resolve();
    },
  };
  const given = openGiven();
  const followed = openFollowed(parts, {
    caller,
    client,
    given,
    listening: () => true,
    send: (message) => sendMessage(transport, message),
  });
  const state: SessionState = { given, followed, first: openFirstQuestions() };
  const server = buildServer(parts, {
    client,
    state,
    transport,
    exchangeOf: ({ requestId }): Exchange => ({
      caller,
      gone: gone.signal,
      idempotencyKey: undefined,
      shared: false,
      whenDelivered: (note) => notes.set(requestId, [...(notes.get(requestId) ?? []), note]),
    }),
    endStream: (requestId) => notes.delete(requestId),
  });
  await server.connect(transport);
  return {
    client,
    state,
    transport,
    async close() {
      gone.abort();
      followed.end();
      await server.close();
    },
  };
}
