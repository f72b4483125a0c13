/** Hosts that speak over pipes alone, behind `mcp-remote`: it passes on what they declare and what they are asked. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernPipe } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  ElicitationCompleteNotificationSchema,
  UrlElicitationRequiredError,
  type ClientCapabilities,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IMPORTED, linkIn, openClientWorld } from '../support/client-world.ts';

const TOOL = { name: 'import_records', arguments: {} };
const { resolve } = createRequire(import.meta.url);
const BRIDGE = join(dirname(resolve('mcp-remote/package.json')), 'dist', 'proxy.js');

let server: Awaited<ReturnType<typeof openClientWorld>>;
/** Where the bridge keeps its things. */
const home = mkdtempSync(join(tmpdir(), 'keyturn-remote-'));

beforeAll(async () => {
  server = await openClientWorld({ delivery: { textLink: ['plain-host'] } });
});

afterAll(async () => {
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

async function bridge(sub: string, clientId: string) {
  const args = [BRIDGE, server.url, '--transport', 'http-only', '--header', 'Authorization:${AUTHORIZATION}'];
  const AUTHORIZATION = `Bearer ${await server.token(sub, clientId)}`;
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, AUTHORIZATION };
  return { command: process.execPath, args, env, stderr: 'ignore' as const };
}

async function host(name: string, capabilities: ClientCapabilities) {
  const client = new Client({ name, version: '1' }, { capabilities });
  await client.connect(new StdioClientTransport(await bridge('alice', name)));
  return client;
}

test('a host of 2025-11-25 gets the link with -32042, hears when it is done with, and calls again for the result', async () => {
  const client = await host('showing-host', { elicitation: { url: {} } });
  const { promise: completed, resolve: complete } = Promise.withResolvers<string>();
  client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) =>
    complete(params.elicitationId),
  );
  const error: unknown = await client.callTool(TOOL).catch((reason: unknown) => reason);
  if (!(error instanceof UrlElicitationRequiredError)) throw error;
  const [elicitation] = error.elicitations;
  await server.signIn(elicitation?.url ?? '', 'alice');
  expect(await completed).toBe(elicitation?.elicitationId);
  expect(await client.callTool(TOOL)).toMatchObject({ content: [{ text: IMPORTED }] });
  await client.close();
});

test('a host of 2026-07-28 is asked in its own call, which ends with the result', async () => {
  const client = new ModernClient(
    { name: 'modern-host', version: '1' },
    { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    await server.signIn(linkIn(params), 'bob');
    return { action: 'accept' };
  });
  await client.connect(new ModernPipe(await bridge('bob', 'modern-host')));
  expect(await client.callTool(TOOL)).toMatchObject({ content: [{ text: IMPORTED }] });
  await client.close();
});

test('a host that shows no links is known by its own name to the rule that allows it links as text', async () => {
  const client = await host('plain-host', {});
  const first = await client.callTool(TOOL);
  expect(JSON.stringify(first.content)).toContain('Call import_records again with the same arguments');
  await server.signIn(linkIn(first.content), 'alice');
  expect(await client.callTool(TOOL)).toMatchObject({ content: [{ text: IMPORTED }] });
  await client.close();
});
