/** One request of a client as its handler sees it, whatever the transport. Holds no state beyond the request. */
import type { Caller } from '../../engine/caller.ts';
import type { Client } from './client.ts';
import type { Note } from './deliveries.ts';

/** How a request came in. */
export interface Exchange {
  readonly caller: Caller;
  /** Fires when nobody can read the answer any more. Ends waits, never a task (D7). */
  readonly gone: AbortSignal;
  /** HTTP `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  /** Whether other requests share the stream of the answer. */
  readonly shared: boolean;
  /** Writes `note` once the answer counts as delivered; never when it was lost on the way. */
  whenDelivered(note: Note): void;
}

/** A message that accompanies a request. */
export type Message =
  | { readonly method: string; readonly params: { readonly [name: string]: unknown } }
  | { readonly id: string; readonly method: string; readonly params: { readonly [name: string]: unknown } };

/** A request on its way through its handler. */
export interface Call extends Omit<Exchange, 'gone' | 'shared'> {
  readonly client: Client;
  /** Fires when the wait is over: the client cancelled the request, or has gone. */
  readonly signal: AbortSignal;
  /** `_meta` of the request. */
  readonly meta: { readonly [name: string]: unknown };
  /** Sends a message on the stream of this request. A lost stream is not an error. */
  send(message: Message): Promise<void>;
}

/** The progress token of a request, if it has a usable one (MCP, basic/utilities/progress). */
export function progressTokenOf(meta: Call['meta']): string | number | undefined {
  const token = meta['progressToken'];
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}
