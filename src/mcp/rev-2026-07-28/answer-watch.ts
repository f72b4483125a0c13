/**
 * Whether an answer reaches its client (D7): on this revision a connection that ends before its answer cancels the
 * request (basic/patterns/cancellation), so that work which nobody has a handle to does not run on.
 */
import type { ServerResponse } from 'node:http';
import type { Log } from '../../log.ts';

/** What a call hears about its answer. */
export interface AnswerWatch {
  /** Fires when the connection has ended, or the server is closing. */
  readonly signal: AbortSignal;
  /** Takes what is to be done if the answer does not leave; done at once when that is so already. */
  onLost(undo: () => Promise<void>): void;
  /** Takes what is to be done once the answer has left. */
  onSent(then: () => Promise<void>): void;
}

/** Watches a response that has not been written yet. */
export function watchAnswer(response: ServerResponse, closing: AbortSignal, log: Log): AnswerWatch {
  const waiting = new AbortController();
  const lost: (() => Promise<void>)[] = [];
  const sent: (() => Promise<void>)[] = [];
  const stop = (): void => waiting.abort();
  closing.addEventListener('abort', stop, { once: true });
  if (closing.aborted || response.destroyed) stop();

  const run = (steps: (() => Promise<void>)[]): void => {
    for (const step of steps.splice(0))
      step().catch((error: unknown) => log.error('mcp.after answer', { error }));
  };

  let left = false;
  response.once('finish', () => {
    left = true;
  });
  response.once('close', () => {
    closing.removeEventListener('abort', stop);
    // What has left is not lost, even if the client goes away with it.
    run(left ? sent : lost);
    stop();
  });

  return {
    signal: waiting.signal,
    onLost(undo) {
      lost.push(undo);
      if (response.closed && !left) run(lost);
    },
    onSent: (then) => void sent.push(then),
  };
}
