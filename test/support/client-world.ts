/**
 * A whole Keyturn in its sandbox for clients that others wrote: their access tokens, which revision they speak, and a
 * person who opens the link that such a client shows.
 */
import { spawn } from 'node:child_process';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld, type World, type WorldOptions } from '../../src/world.ts';

const LINK = /http:\/\/localhost:\d+\/connect\/[\w-]+/;

/** The one link in whatever a client shows. */
export function linkIn(shown: unknown): string {
  const text = typeof shown === 'string' ? shown : JSON.stringify(shown);
  const link = LINK.exec(text)?.[0];
  if (link === undefined) throw new Error(`no link in: ${text}`);
  return link;
}

/** What every client is after in the end. */
export const IMPORTED = '1000 records in 10 pages are in "paperboat-records".';

/** A world, with eyes on the wire. */
export async function openClientWorld(config: WorldOptions['config'] = {}) {
  const world = await openWorld({ logStream: { write: () => undefined }, config });
  return { ...(await lookAt(world)), world, url: world.mcpUrl, close: () => world.close() };
}

async function lookAt(world: World) {
  const { issuer } = world.sandbox;
  const spoken = new Set<string>();
  world.keyturn.app.server.on('request', ({ method, headers }) => {
    const revision = headers['mcp-protocol-version'];
    if (method === 'POST' && typeof revision === 'string') spoken.add(revision);
  });
  return {
    /** An access token of a person for a client that is registered for it alone. */
    token: (sub: string, clientId: string): Promise<string> =>
      issuer.issueAccessToken({
        sub,
        clientId,
        scope: 'mcp:tools',
        resource: world.mcpUrl,
        expiresInSeconds: 600,
      }),

    /** Opens a link and signs in, at the server and at the SaaS. */
    async signIn(link: string, as: string): Promise<void> {
      const { status, title } = await openPerson().signInEverywhere(link, { as });
      if (status !== 200) throw new Error(`the sign-in ended with ${status}: ${title}`);
    },

    /** The revisions that were spoken since the last look. */
    takeSpoken(): string[] {
      const revisions = [...spoken];
      spoken.clear();
      return revisions;
    },
  };
}

/** A client that is a program: runs it to its end. */
export function runProgram(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((ended, failed) => {
    const child = spawn(process.execPath, [file, ...args], {
      env: { PATH: process.env['PATH'], NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 50_000,
      killSignal: 'SIGKILL',
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    child.on('error', failed);
    child.on('close', (code) => ended({ code, out, err }));
  });
}
