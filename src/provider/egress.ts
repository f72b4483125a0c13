/**
 * The one way out (R17): every request that we make as a client passes here. It checks the address that was
 * really connected to, so that a name that resolves anew does not help; follows no redirects; knows no proxy
 * variables; bounds time and size.
 */
import { lookup as resolve, type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP, type Socket } from 'node:net';
import { Agent, buildConnector, fetch as undiciFetch } from 'undici';
import { Refusal } from '../errors.ts';
import { isPublicAddress } from './addresses.ts';

/** How far out. */
export interface EgressOptions {
  /** Origins that may be private or loopback, and plain http: `http://127.0.0.1:8080`. */
  readonly allowPrivate: readonly string[];
  /** For a whole request, body included, in milliseconds. */
  readonly timeoutMs: number;
  /** Largest answer, in bytes. */
  readonly maxBodyBytes: number;
  /** Sends in place of the network: tests record and replay here. The address rules cannot hold then. */
  readonly send?: (url: URL, init: RequestInit) => Promise<Response>;
}

export interface Egress {
  /**
   * @throws Refusal `egress_forbidden` (fact `origin`), `provider_unavailable` (fact `sent`: whether the
   *   request may have arrived).
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

/** Errors before a single byte of the request can have left. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

function codeOf(error: unknown): string | undefined {
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    if ('code' in one && typeof one.code === 'string') return one.code;
  }
  return undefined;
}

function refusalOf(error: unknown): Refusal | undefined {
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    if (one instanceof Refusal) return one;
  }
  return undefined;
}

export function openEgress(options: EgressOptions): Egress {
  const allowed = new Set(options.allowPrivate.map((origin) => new URL(origin).origin));
  const guarded = agent(false, options.timeoutMs);
  const inside = agent(true, options.timeoutMs);
  const send = options.send ?? onSockets;

  function check(url: URL): Agent {
    if (url.username !== '' || url.password !== '') {
      throw new Refusal('egress_forbidden', { facts: { origin: url.origin, why: 'user in URL' } });
    }
    if (allowed.has(url.origin)) return inside;
    if (url.protocol !== 'https:') {
      throw new Refusal('egress_forbidden', { facts: { origin: url.origin, why: 'not https' } });
    }
    return guarded;
  }

  return {
    async fetch(target, init = {}) {
      const url = new URL(target);
      const dispatcher = check(url);
      const timeout = AbortSignal.timeout(options.timeoutMs);
      const signal = init.signal == null ? timeout : AbortSignal.any([timeout, init.signal]);
      let response: Response;
      try {
        const request: RequestInit = { ...init, signal, redirect: 'manual' };
        response = await send(url, request, dispatcher);
      } catch (error) {
        throw unavailable(error, init.signal ?? undefined);
      }
      return at(url, bounded(response, options.maxBodyBytes, init.signal ?? undefined));
    },
    async close() {
      await Promise.all([guarded.close(), inside.close()]);
    },
  };
}

/** The network. Types of undici and of the platform differ in name only. */
function onSockets(url: URL, init: RequestInit, dispatcher: Agent): Promise<Response> {
  return undiciFetch(url, { ...init, dispatcher } as never) as unknown as Promise<Response>;
}

function unavailable(error: unknown, caller: AbortSignal | undefined): unknown {
  const refusal = refusalOf(error);
  if (refusal !== undefined) return refusal;
  // The caller's own abort is the caller's, not the provider's.
  if (caller?.aborted === true) return caller.reason;
  const code = codeOf(error) ?? 'unnamed';
  return new Refusal('provider_unavailable', {
    facts: { sent: !NEVER_SENT.has(code), code },
    cause: error,
  });
}

/** The answer with the address that it came from, which a response made by hand does not know. */
export function at(url: URL | string, response: Response): Response {
  return Object.defineProperty(response, 'url', { value: String(url), configurable: true });
}

/**
 * The answer with its body read through a limit. Streaming goes on; a body that is too long fails where it
 * does.
 */
function bounded(response: Response, most: number, caller: AbortSignal | undefined): Response {
  const { body } = response;
  const length = Number(response.headers.get('content-length') ?? '0');
  if (length > most) {
    void body?.cancel();
    throw new Refusal('provider_unavailable', { facts: { sent: true, code: 'too_large' } });
  }
  // A Response of ours may not carry a body with these (Fetch, section 5.5).
  if (body === null || [101, 103, 204, 205, 304].includes(response.status)) return response;
  let seen = 0;
  const reader = body.getReader();
  const limited = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          return;
        }
        seen += value.byteLength;
        if (seen > most) {
          await reader.cancel();
          throw new Refusal('provider_unavailable', { facts: { sent: true, code: 'too_large' } });
        }
        controller.enqueue(value);
      } catch (error) {
        controller.error(unavailable(error, caller));
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(limited, {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers],
  });
}

/** An agent that connects to public addresses only, or, for origins that the configuration allows, to any. */
function agent(privateToo: boolean, timeoutMs: number): Agent {
  const connectTimeoutMs = Math.min(timeoutMs, 10_000);
  function lookup(
    hostname: string,
    options: LookupOptions,
    callback: (
      error: NodeJS.ErrnoException | null,
      address: string | LookupAddress[],
      family?: number,
    ) => void,
  ): void {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const usable = privateToo ? addresses : addresses.filter((one) => isPublicAddress(one.address));
      const [first] = usable;
      if (first === undefined) return callback(forbidden(hostname) as NodeJS.ErrnoException, []);
      if (options.all === true) return callback(null, usable);
      return callback(null, first.address, first.family);
    });
  }
  const connect = buildConnector({ timeout: connectTimeoutMs, lookup: lookup as never });
  return new Agent({
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect(target, callback) {
      // A literal address never passes the look-up. Refused before a packet leaves, so that nothing can be
      // probed.
      const literal = target.hostname.replace(/^\[|\]$/g, '');
      if (!privateToo && isIP(literal) !== 0 && !isPublicAddress(literal)) {
        return callback(forbidden(target.hostname), null);
      }
      connect(target, (error, socket) => {
        if (error !== null) return callback(error, null);
        const address = (socket as Socket).remoteAddress;
        // Whatever was said before: what counts is the address that was connected to.
        if (!privateToo && (address === undefined || !isPublicAddress(address))) {
          socket.destroy();
          return callback(forbidden(target.hostname), null);
        }
        return callback(null, socket);
      });
    },
  });
}

function forbidden(hostname: string): Refusal {
  return new Refusal('egress_forbidden', { facts: { host: hostname, why: 'not a public address' } });
}
