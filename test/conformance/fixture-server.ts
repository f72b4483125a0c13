/**
 * The server under test of the official conformance suite: a whole Keyturn, built only with what an embedder imports.
 * The suite sends no access token, so that an `authenticate` of ours names one caller for all.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeyturn, readConfig } from '../../src/index.ts';
import { generateKey } from '../../src/vault/keyring.ts';
import { fixtureTools } from './fixture-tools.ts';

export interface FixtureServer {
  readonly url: string;
  close(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

/** Starts the server on a free port of the loopback. */
export async function openFixtureServer(): Promise<FixtureServer> {
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-conformance-'));
  const port = await freePort();
  let changed = (): void => undefined;
  const tools = fixtureTools(() => changed());
  const keyturn = await createKeyturn(
    readConfig({
      name: 'conformance-fixture',
      version: '1.0.0',
      publicUrl: `http://localhost:${port}`,
      issuer: { url: 'http://localhost:9', client: { id: 'none' } },
      ledger: { file: join(folder, 'keyturn.sqlite') },
      vault: { keys: { env: 'KEYS' } },
      tools,
      companionTools: 'never',
      log: { level: 'silent' },
    }),
    {
      env: { KEYS: generateKey().entry.reveal() },
      authenticate: () => ({ owner: 'http://localhost:9#everyone', clientId: 'conformance', scopes: [] }),
    },
  );
  changed = () => keyturn.replaceTools(tools);
  await keyturn.app.listen({ host: '127.0.0.1', port });
  keyturn.start();
  return {
    url: `http://localhost:${port}/mcp`,
    async close() {
      // Connections that the suite leaves open unused would hold up the end.
      const stopped = keyturn.stop();
      keyturn.app.server.closeAllConnections();
      await stopped;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
