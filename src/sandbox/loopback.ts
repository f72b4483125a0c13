/**
 * The sandbox exists on this machine only: what it listens on, whom it sends people to and whom it mints
 * tokens for is loopback, or it refuses.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** Whether a URL stays on this machine. */
export function isLoopback(url: URL): boolean {
  return (url.protocol === 'http:' || url.protocol === 'https:') && LOOPBACK.test(url.hostname);
}

/**
 * Reads a URL that has to stay on this machine.
 *
 * @param field what the URL is, for the message
 * @throws TypeError for a text that is no URL, or a URL of another machine.
 */
export function requireLoopback(field: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !isLoopback(url)) {
    throw new TypeError(`${field}: the sandbox works on loopback only, so that "${text}" is refused`);
  }
  return url;
}

/**
 * A server that listens and does not answer yet: its origin has to be known before what answers can be
 * built.
 */
export interface Listening {
  readonly server: Server;
  /** Scheme, host and port, without a trailing slash. */
  readonly origin: string;
  close(): Promise<void>;
}

/**
 * Listens on the first of several loopback addresses that this machine has. A browser takes every address
 * for a site of its own, so the choice matters; macOS has 127.0.0.1 and ::1 only, unless others are added.
 *
 * @param port 0 for any free one
 * @throws Error when none of the addresses can be had.
 */
export async function listenOnFirst(addresses: readonly string[], port: number): Promise<Listening> {
  let last: unknown;
  for (const address of addresses) {
    requireLoopback('address', `http://${hostOf(address)}/`);
    try {
      return await listenOn(address, port);
    } catch (error) {
      if (!isAddressMissing(error)) throw error;
      last = error;
    }
  }
  throw new Error(`none of the addresses ${addresses.join(', ')} exists on this machine`, { cause: last });
}

async function listenOn(address: string, port: number): Promise<Listening> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port }, resolve);
  });
  const { port: given } = server.address() as AddressInfo;
  return {
    server,
    origin: `http://${hostOf(address)}:${given}`,
    close: () =>
      new Promise<void>((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}

function hostOf(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

function isAddressMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
}
