/**
 * MCP over standard input and output, all revisions, for one local person (MCP, basic/transports, "stdio"). It reads and
 * writes lines and tells the eras apart; the faces are the same as over HTTP, and the work is the engine's, so a long
 * job holds up neither the pipe nor another call. Nothing but messages is ever written to the output; logs go to
 * standard error.
 */
import type { Readable, Writable } from 'node:stream';
import { ReadBuffer } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Caller } from '../engine/caller.ts';
import { isRefusal } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Catalogue } from './catalogue.ts';
import type { ModernFace } from './endpoint.ts';
import { eraOf } from './era.ts';
import { errorText, INVALID_REQUEST, isObject, PARSE_ERROR, readMessage } from './json-rpc.ts';
import { openModernPipe } from './pipe-modern.ts';
import type { LegacyOptions } from './rev-2025-11-25/parts.ts';
import { openHandshakePipe } from './rev-2025-11-25/pipe.ts';

/** What a pipe is served with. */
export interface StdioOptions {
  /** Everybody who can write to the pipe is this person with this client. */
  readonly caller: Caller;
  readonly catalogue: Catalogue;
  /** The face of 2026-07-28. It stays open when the pipe closes. */
  readonly modern: ModernFace;
  /** The face of the revisions with a handshake is opened from this. */
  readonly legacy: LegacyOptions;
  readonly input?: Readable;
  readonly output?: Writable;
  readonly log: Log;
}

/** A pipe that is being served. */
export interface StdioServer {
  /** Resolves when the input has ended, or after `close`. Tasks go on in the ledger. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** Longest message, in bytes. */
const MOST_BYTES = 4 * 1_048_576;

/** Serves until the input ends. @throws Refusal `configuration_invalid`. */
export async function serveStdio(options: StdioOptions): Promise<StdioServer> {
  const { caller, catalogue, log } = options;
  const input = options.input ?? process.stdin;
  const output = options.output ?? process.stdout;
  const { promise: closed, resolve: ended } = Promise.withResolvers<void>();
  let closing: Promise<void> | undefined;

  async function write(text: string): Promise<void> {
    if (closing !== undefined || !output.writable) return;
    if (output.write(`${text}\n`)) return;
    // Whoever writes waits until the reader has caught up, or is gone.
    await new Promise<void>((resolve) => {
      output.once('drain', resolve);
      output.once('close', resolve);
    });
  }

  const legacy = openHandshakePipe(options.legacy, caller, write);
  const modern = await openModernPipe({ face: options.modern, catalogue, caller, write });

  async function take(body: unknown): Promise<void> {
    const message = readMessage(body);
    if (message.kind === 'malformed') {
      return await write(
        errorText(message.id, { status: 400, code: INVALID_REQUEST, message: message.message }),
      );
    }
    if (message.kind === 'notification' && message.method === 'notifications/cancelled') {
      const id = message.params['requestId'];
      if ((typeof id === 'string' || typeof id === 'number') && modern.cancel(id)) return undefined;
    }
    if (message.kind !== 'response' && eraOf(message, {}) === 'modern') {
      // Answered when it is: the next message does not wait for it.
      void modern.take(message, body).catch((error: unknown) => log.error('stdio.failed', { error }));
      return undefined;
    }
    return await legacy.take(body);
  }

  const buffer = new ReadBuffer({ maxBufferSize: MOST_BYTES });
  let tail: Promise<void> = Promise.resolve();

  function next(): unknown {
    try {
      return buffer.readMessage();
    } catch (error) {
      const code = error instanceof SyntaxError ? PARSE_ERROR : INVALID_REQUEST;
      return { fault: errorText(undefined, { status: 400, code, message: 'Not a JSON-RPC message.' }) };
    }
  }

  function read(chunk: Buffer): void {
    try {
      buffer.append(chunk);
    } catch (error) {
      log.error('stdio.line too long', { error });
      void close();
      return;
    }
    for (let body = next(); body !== null; body = next()) {
      const one = body;
      // In order, so that a session has begun before it is used.
      tail = tail
        .then(() => (isFault(one) ? write(one.fault) : take(one)))
        .catch((error: unknown) => {
          log.error(isRefusal(error) ? 'stdio.refused' : 'stdio.failed', { error });
        });
    }
  }

  function close(): Promise<void> {
    closing ??= (async () => {
      input.off('data', read);
      input.off('end', stop);
      input.off('close', stop);
      input.pause();
      await Promise.allSettled([legacy.close(), modern.close()]);
      ended();
    })();
    return closing;
  }

  const stop = (): void => void close();
  input.on('data', read);
  input.once('end', stop);
  input.once('close', stop);
  output.on('error', stop);
  return { closed, close };
}

function isFault(value: unknown): value is { readonly fault: string } {
  return isObject(value) && typeof value['fault'] === 'string' && !('jsonrpc' in value);
}
