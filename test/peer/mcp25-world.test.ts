/** MCP 2025-11-25 on a whole Keyturn: real access tokens, engine, provider, and a person in a browser. */
import {
  CallToolResultSchema,
  McpError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld, type World } from '../../src/world.ts';
import { connectClient } from '../support/legacy-client.ts';

let world: World;

beforeAll(async () => {
  world = await openWorld({
    logStream: { write: () => undefined },
    config: { delivery: { textLink: ['plain-host'] } },
  });
});

afterAll(() => world.close());

const TOOL = { name: 'import_records', arguments: {} };

async function connect(sub: string, clientId: string, options: Parameters<typeof connectClient>[2] = {}) {
  const token = await world.sandbox.issuer.issueAccessToken({
    sub,
    clientId,
    scope: 'mcp:tools',
    resource: world.mcpUrl,
    expiresInSeconds: 600,
  });
  return await connectClient(new URL(world.mcpUrl), token, options);
}

async function errorOf(promise: Promise<unknown>): Promise<McpError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof McpError)) throw new Error('no protocol error', { cause: error });
  return error;
}

test('a client that shows no URL is refused with code 4012 where the operator allows nothing else', async () => {
  const alice = await connect('alice', 'form-only', { capabilities: { elicitation: {} } });
  const error = await errorOf(alice.client.callTool(TOOL));
  expect(error).toMatchObject({
    code: 4012,
    data: {
      reason: 'elicitation_unsupported',
      requiredCapabilities: { elicitation: { url: {} } },
    },
  });
  expect(alice.asked).toEqual([]);
  await alice.close();
});

test('a client that the operator allows links as text is given one, and the call repeated gives the result', async () => {
  const alice = await connect('alice', 'text', { capabilities: { elicitation: {} }, name: 'plain-host' });
  const first = await alice.client.callTool(TOOL);
  const words = JSON.stringify(first.content);
  const [, url = ''] = /(http:\/\/localhost:\d+\/connect\/[\w-]+)/.exec(words) ?? [];
  expect((await openPerson().signInEverywhere(url, { as: 'alice' })).status).toBe(200);
  expect(await alice.client.callTool(TOOL, CallToolResultSchema)).toMatchObject({
    structuredContent: { records: 1_000 },
  });
  await alice.close();
});

test('a task asks the person for another client of theirs, and its result is streamed', async () => {
  const person = openPerson();
  const alice = await connect('alice', 'tasks', {
    answer: async (asked) => {
      await person.signInEverywhere((asked as { url: string }).url, { as: 'alice' });
      return { action: 'accept' };
    },
  });
  const seen: string[] = [];
  let result: unknown;
  for await (const message of alice.client.experimental.tasks.callToolStream(TOOL, undefined, { task: {} })) {
    seen.push(message.type);
    if (message.type === 'result') ({ result } = message);
    if (message.type === 'error') throw message.error;
  }
  expect(seen).toContain('taskCreated');
  expect(result).toMatchObject({ structuredContent: { records: 1_000 } });
  expect(alice.asked).toHaveLength(1);
  await alice.close();
});

test('a plain call is told to sign in, and joins its task after a restart of the server, in its old session', async () => {
  const bob = await connect('bob', 'plain');
  const error = await errorOf(bob.client.callTool(TOOL));
  if (!(error instanceof UrlElicitationRequiredError)) throw error;
  const end = await openPerson().signInEverywhere(error.elicitations[0]?.url ?? '', { as: 'bob' });
  expect(end.url).toContain('/outcome/');
  await world.restart();
  expect(await bob.client.callTool(TOOL, CallToolResultSchema)).toMatchObject({
    structuredContent: { records: 1_000 },
  });
  expect(bob.asked).toEqual([]);
  await bob.close();
});
