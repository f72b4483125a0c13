/** Several accounts of one person at one provider, on both protocol faces. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { withAccounts } from '../../src/engine/accounts.ts';
import { defineJob, text } from '../../src/engine/define.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld, type World } from '../../src/world.ts';
import { connectClient } from '../support/legacy-client.ts';
import { openMcpClient, type McpClient, type WireInputRequest } from '../support/mcp-client.ts';

const TOOL = 'import_records';
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

let world: World;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  world = await openWorld({ config: { log: { level: 'silent' } } });
  closing.push(() => world.close());
});

afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

function accessToken(): Promise<string> {
  return world.sandbox.issuer.issueAccessToken({
    sub: 'alice',
    clientId: 'chat',
    scope: 'mcp:tools',
    resource: world.mcpUrl,
    expiresInSeconds: 600,
  });
}

async function client(
  capabilities: Record<string, unknown>,
  onElicit?: (params: WireInputRequest['params']) => {
    action: 'accept' | 'decline';
    content?: Record<string, unknown>;
  },
): Promise<McpClient> {
  const token = await accessToken();
  const opened = await openMcpClient({
    url: world.mcpUrl,
    token: () => token,
    capabilities,
    ...(onElicit === undefined ? {} : { onElicit }),
  });
  closing.push(() => opened.close());
  return opened;
}

const owner = () => ownerOf({ issuer: world.sandbox.issuer.issuer, subject: 'alice' });

async function recordIds(): Promise<string[]> {
  const kept = await world.keyturn.ledger.readRecords('paperboat-records', owner(), {
    afterId: '',
    limit: 5_000,
  });
  return kept.map((row) => row.id);
}

/** Runs the tool to its end; whoever is asked to sign in takes this account. */
async function importAs(args: Record<string, unknown>, account: string): Promise<string[]> {
  const chat = await client({ ...TASKS, elicitation: { url: {}, form: {} } });
  const called = await chat.call(TOOL, args);
  if (called.kind !== 'task') throw new Error('no handle came');
  const pages: string[] = [];
  const done = await chat.follow(called.task.taskId, {
    async onInput(_key, { params }) {
      const person = openPerson();
      await person.signInEverywhere(params.url ?? '', { as: 'alice', account });
      pages.push(...person.visits.map((visit) => visit.html));
      return { action: 'accept' };
    },
  });
  expect(done.status).toBe('completed');
  return pages;
}

test('the first account needs no name; another is connected by the name that the person gives it', async () => {
  const first = await importAs({}, 'alice@paperboat');
  expect(first.join('')).not.toContain('your chat calls');
  const second = await importAs({ account: 'work' }, 'bob@paperboat');
  expect(second.join('')).toContain('The one that your chat calls “work”');
  const connections = await world.keyturn.ledger.findConnections({ owner: owner(), after: '', limit: 10 });
  expect(Object.fromEntries(connections.map((one) => [one.account, one.record?.subject]))).toEqual({
    default: 'alice@paperboat',
    work: 'bob@paperboat',
  });
  // Two accounts number alike: neither overwrites the other.
  const ids = await recordIds();
  expect(ids).toHaveLength(2_000);
  expect(ids.filter((id) => id.startsWith('work:'))).toHaveLength(1_000);
});

test('with two accounts a client that shows forms is asked which, before there is a task', async () => {
  const asked: WireInputRequest['params'][] = [];
  const chat = await client({ ...TASKS, elicitation: { url: {}, form: {} } }, (params) => {
    asked.push(params);
    return { action: 'accept', content: { account: 'work' } };
  });
  const called = await chat.call(TOOL);
  expect(asked).toEqual([
    expect.objectContaining({
      mode: 'form',
      message: expect.stringContaining('Which account at Paperboat') as string,
      requestedSchema: expect.objectContaining({
        properties: { account: expect.objectContaining({ enum: ['default', 'work'] }) as object },
      }) as object,
    }),
  ]);
  if (called.kind !== 'task') throw new Error('no handle came');
  expect((await chat.follow(called.task.taskId)).status).toBe('completed');
  const kept = await world.keyturn.ledger.readTask(called.task.taskId);
  expect(kept?.task.args).toEqual({ account: 'work' });
});

test('a client that shows no forms is told to ask and to call again with the name', async () => {
  const chat = await client({ ...TASKS, elicitation: { url: {} } });
  const called = await chat.call(TOOL);
  expect(called).toMatchObject({ kind: 'result', result: { isError: true } });
  expect(JSON.stringify(called)).toContain('as one of: default, work.');
  const named = await chat.call(TOOL, { account: 'default' });
  if (named.kind !== 'task') throw new Error('no handle came');
  expect((await chat.follow(named.task.taskId)).status).toBe('completed');
});

test('on 2025-11-25 the question comes on the stream of the call, or the words where no form can be shown', async () => {
  const token = await accessToken();
  const forms = await connectClient(new URL(world.mcpUrl), token, {
    answer: () => ({ action: 'accept', content: { account: 'work' } }),
  });
  closing.push(() => forms.close());
  const result = await forms.client.callTool({ name: TOOL, arguments: {} });
  expect(forms.asked).toHaveLength(1);
  expect(result).toMatchObject({ structuredContent: { records: 1_000 } });

  const plain = await connectClient(new URL(world.mcpUrl), token, {
    capabilities: { elicitation: { url: {} } },
  });
  closing.push(() => plain.close());
  const told = await plain.client.callTool({ name: TOOL, arguments: {} });
  expect(told).toMatchObject({ isError: true });
  expect(JSON.stringify(told)).toContain('Ask which one');
});

test.each([['../default'], ['a'.repeat(65)], ['<b>'], [''], [7]])(
  'a name that is none is refused: %j',
  async (account) => {
    const chat = await client({ ...TASKS, elicitation: { url: {} } });
    const called = await chat.call(TOOL, { account });
    expect(called).toMatchObject({ kind: 'result', result: { isError: true } });
    expect(JSON.stringify(called)).toContain('arguments.account');
  },
);

test('a job that cannot say which provider an account is of does not start the server', () => {
  const parts = { ledger: world.keyturn.ledger, providers: undefined as never };
  const several = (requires: Record<string, object>) =>
    defineJob({
      name: 'two',
      description: 'two',
      accounts: 'several',
      requires,
      run: async () => text('done'),
    });
  for (const requires of [{}, { paperboat: {}, other: {} }]) {
    expect(() => withAccounts(several(requires), parts)).toThrow(/tools\.two\.accounts/);
  }
});
