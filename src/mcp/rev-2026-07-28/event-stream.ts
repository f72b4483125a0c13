/**
 * One open stream of server-sent events on a request (transports/streamable-http, "Receiving Messages"): comments keep it
 * alive, a reader that does not read is dropped. It holds no queue: whoever writes asks first whether there is room.
 */
import type { ServerResponse } from 'node:http';

/** An open stream. */
export interface EventStream {
  /** Whether more may be written now. */
  ready(): boolean;
  /** Writes one message. */
  send(text: string): void;
  /** Writes a last message, if any, and closes. */
  end(text?: string): void;
}

/** How a stream is kept. */
export interface EventStreamOptions {
  /** Between two comments, in milliseconds. */
  readonly keepAliveMs: number;
  /** A reader that takes nothing for this long is dropped. */
  readonly patienceMs: number;
  /** There is room again, or it is time to look again. */
  readonly onRoom: () => void;
  /** The stream is over, whoever ended it. */
  readonly onClosed: () => void;
}

/** Opens the stream on a response whose headers have not been sent. */
export function openEventStream(response: ServerResponse, options: EventStreamOptions): EventStream {
  let congested = false;
  let closed = false;
  let patience: NodeJS.Timeout | undefined;

  // A client that went away before its stream began has been closed already, and is not closed again.
  if (response.destroyed) {
    options.onClosed();
    return { ready: () => false, send: () => undefined, end: () => undefined };
  }

  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform, no-store',
    // Proxies that buffer would hold every message back.
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();

  function write(text: string): void {
    if (closed) return;
    if (response.write(text)) return;
    congested = true;
    patience ??= setTimeout(() => response.destroy(), options.patienceMs);
  }

  response.on('drain', () => {
    congested = false;
    clearTimeout(patience);
    patience = undefined;
    options.onRoom();
  });

  const keepAlive = setInterval(() => {
    if (!congested) write(':\n\n');
    options.onRoom();
  }, options.keepAliveMs);

  response.once('close', () => {
    closed = true;
    clearInterval(keepAlive);
    clearTimeout(patience);
    options.onClosed();
  });
  // A broken pipe also closes: nothing more is to be done about it.
  response.on('error', () => undefined);

  const event = (text: string): string => `event: message\ndata: ${text}\n\n`;

  return {
    ready: () => !closed && !congested,
    send: (text) => write(event(text)),
    end(text) {
      if (closed) return;
      if (text !== undefined) write(event(text));
      response.end();
    },
  };
}
