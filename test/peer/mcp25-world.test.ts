/** MCP 2025-11-25 before a real engine, a real provider and a person in a browser, with the SDK's client. */
import type { AddressInfo } from 'node:net';
import { CallToolResultSchema, UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { silentLog } from '../../src/log.ts';
import { openCatalogue } from '../../src/mcp/catalogue.ts';
import { openLegacyFace } from '../../src/mcp/rev-2025-11-25/face.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { parseKeyText } from '../../src/vault/key-text.ts';
import { generateKey, openKeyring } from '../../src/vault/keyring.ts';
import { importRecords, openWorld, type World } from '../../src/world.ts';
import { connectClient } from '../support/legacy-client.ts';

let world: World;
let node: { url: URL; close(): Promise<void> };
const keyText = generateKey().entry.reveal();

beforeAll(async () => {
  world = await openWorld({ logStream: { write: () => undefined } });
  node = await startNode();
});

afterAll(async () => {
  await node.close();
  await world.close();
});

/** Callers by token: `<person>/<client>`. */
function callerOf(authorization: string | undefined) {
  const [who = '', clientId = ''] = (authorization ?? '').replace(/^Bearer /, '').split('/');
  const { issuer, accounts } = world.sandbox.issuer;
  const subject = accounts.find((account) => account.id.includes(who))?.id ?? who;
  return { owner: ownerOf({ issuer, subject }), clientId, scopes: [] };
}

async function startNode() {
  const face = openLegacyFace({
    catalogue: openCatalogue([importRecords(world.sandbox.providerSettings.recordsUrl)]),
    tasks: world.keyturn.engine.tasks,
    keyring: await openKeyring(parseKeyText(keyText, 'KEYS')),
    serverInfo: { name: 'keyturn', version: '1' },
    log: silentLog,
    settings: { keepAliveMs: 500, lingerMs: 100 },
  });
  const app: FastifyInstance = Fastify({ forceCloseConnections: true });
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: '/mcp',
    handler: async (request, reply) => {
      const caller = callerOf(request.headers.authorization);
      await face.handle({ request, reply, caller, body: request.body });
      return reply;
    },
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    async close() {
      await face.close();
      await app.close();
    },
  };
}

test('a task asks for a sign-in, the person signs in across three sites, and its result is streamed', async () => {
  const person = openPerson();
  const alice = await connectClient(node.url, 'alice/first', {
    answer: async (asked) => {
      await person.signInEverywhere((asked as { url: string }).url, { as: 'alice' });
      return { action: 'accept' };
    },
  });
  const seen: string[] = [];
  let result: unknown;
  for await (const message of alice.client.experimental.tasks.callToolStream(
    { name: 'import_records', arguments: {} },
    undefined,
    { task: {} },
  )) {
    seen.push(message.type);
    if (message.type === 'result') ({ result } = message);
    if (message.type === 'error') throw message.error;
  }
  expect(seen).toContain('taskCreated');
  expect(result).toMatchObject({ structuredContent: { records: 1_000 } });
  expect(alice.asked).toHaveLength(1);
  await alice.close();
});

test('a plain call is told to sign in, and joins its task after a restart of the server', async () => {
  const bob = await connectClient(node.url, 'bob/second');
  const error: unknown = await bob.client
    .callTool({ name: 'import_records', arguments: {} })
    .then(() => undefined)
    .catch((reason: unknown) => reason);
  if (!(error instanceof UrlElicitationRequiredError)) throw error;
  const person = openPerson();
  const end = await person.signInEverywhere(error.elicitations[0]?.url ?? '', { as: 'bob' });
  expect(end.status).toBe(200);
  await bob.close();

  await node.close();
  await world.restart();
  node = await startNode();
  const again = await connectClient(node.url, 'bob/second');
  const result = await again.client.callTool({ name: 'import_records', arguments: {} }, CallToolResultSchema);
  expect(result).toMatchObject({ structuredContent: { records: 1_000 } });
  expect(again.asked).toEqual([]);
  await again.close();
});
