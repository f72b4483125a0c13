import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld, type World } from '../../src/world.ts';
import {
  openMcpClient,
  type McpClient,
  type McpClientOptions,
  type WireInputRequest,
} from '../support/mcp-client.ts';

let world: World;
/** Where the operator lets links go as text to one kind of client. */
let lenient: World;
const clients: McpClient[] = [];
const logStream = { write: () => undefined };

beforeAll(async () => {
  const timing = { holdMs: 600 };
  world = await openWorld({ config: { timing }, logStream });
  lenient = await openWorld({
    config: { timing, delivery: { textLink: ['plain-host'] } },
    logStream,
  });
});

afterAll(async () => {
  await Promise.all(clients.map((one) => one.close()));
  await Promise.all([world.close(), lenient.close()]);
});

/** A client of a person, through a client registration of their own. */
async function client(
  who: string,
  options: Partial<McpClientOptions> = {},
  at: World = world,
): Promise<McpClient> {
  const sub = at.sandbox.issuer.accounts.find((one) => one.id.includes(who))?.id ?? who;
  const token = await at.sandbox.issuer.issueAccessToken({
    sub,
    clientId: 'peer-client',
    scope: 'mcp:tools',
    resource: at.mcpUrl,
    expiresInSeconds: 600,
  });
  const opened = await openMcpClient({ url: at.mcpUrl, token: () => token, ...options });
  clients.push(opened);
  return opened;
}

/** Everything that a client was sent, as one text. */
function recorder(): { seen: unknown[]; text(): string } {
  const seen: unknown[] = [];
  return { seen, text: () => JSON.stringify(seen) };
}

test('a client without tasks is shown the link once, waits while the person signs in, and gets the result', async () => {
  const traffic = recorder();
  const prompts: WireInputRequest['params'][] = [];
  let signedIn: Promise<unknown> = Promise.resolve();
  const alice = await client('alice', {
    capabilities: { elicitation: { url: {} } },
    onMessage: (message) => traffic.seen.push(message),
    onElicit(params) {
      prompts.push(params);
      // The person takes longer than a leg.
      signedIn = new Promise((resolve) => setTimeout(resolve, 900)).then(() =>
        openPerson().signInEverywhere(params.url ?? '', { as: 'alice' }),
      );
      return { action: 'accept' };
    },
  });
  const called = await alice.call('import_records', {}, { timeoutMs: 30_000 });
  await signedIn;
  expect(called).toMatchObject({ kind: 'result', result: { structuredContent: { records: 1_000 } } });
  expect(prompts).toHaveLength(1);
  expect(prompts[0]).toMatchObject({ mode: 'url' });
  expect(prompts[0]?.url).toMatch(/^http:\/\/localhost:\d+\/connect\/[\w-]+$/);
  expect(prompts[0]).not.toHaveProperty('elicitationId');
  const legs = traffic.seen.filter(
    (message) => (message as { result?: { resultType?: string } }).result?.resultType === 'input_required',
  );
  expect(legs.length).toBeGreaterThanOrEqual(2);
  expect(traffic.text()).not.toContain('notifications/elicitation/complete');
});

test('a client that shows forms alone is refused with what is missing, and is never sent a link', async () => {
  const traffic = recorder();
  const bob = await client('bob', {
    capabilities: { elicitation: {} },
    onElicit: () => ({ action: 'accept' }),
    onMessage: (message) => traffic.seen.push(message),
  });
  await expect(bob.call('import_records')).rejects.toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { elicitation: { url: {} } } },
  });
  expect(traffic.text()).not.toContain('/connect/');
});

test('a task shows its link to the polls that can show one, and to no other', async () => {
  const bob = await client('bob');
  const forms = await client('bob', {
    capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: { form: {} } },
  });
  const called = await bob.call('import_records');
  if (called.kind !== 'task') throw new Error('no handle came');
  const { taskId } = called.task;
  await expect.poll(async () => (await bob.get(taskId)).status).toBe('input_required');
  for (let turn = 0; turn < 2; turn += 1) {
    const shown = await bob.get(taskId);
    expect(shown.inputRequests).toMatchObject({
      paperboat: { method: 'elicitation/create', params: { mode: 'url' } },
    });
    const hidden = await forms.get(taskId);
    expect(hidden).toMatchObject({ status: 'input_required', inputRequests: {} });
    expect(hidden.statusMessage).toContain('continue in one that does');
    expect(JSON.stringify(hidden)).not.toContain('/connect/');
  }
  // Accepted links are listed no more, and nobody is asked to open them again and again.
  const { url } = (await bob.get(taskId)).inputRequests?.['paperboat']?.params ?? {};
  await bob.update(taskId, { paperboat: { action: 'accept' } });
  const waiting = await bob.get(taskId);
  expect(waiting).toMatchObject({ status: 'input_required', inputRequests: {} });
  expect(waiting.statusMessage).toMatch(/sign-in .* until/);
  await openPerson().signInEverywhere(url ?? '', { as: 'bob' });
  expect(await bob.follow(taskId, { mostPauseMs: 50 })).toMatchObject({
    status: 'completed',
    result: { structuredContent: { records: 1_000 } },
  });
});

test('where the operator allows it, a client that shows no links is given them as text, and calls again for the result', async () => {
  const plain = await client('alice', { name: 'plain-host', capabilities: { elicitation: {} } }, lenient);
  const told = async () => {
    const called = await plain.call('import_records');
    if (called.kind !== 'result') throw new Error('no result came');
    return called.result.content[0]?.text ?? '';
  };
  const first = await told();
  const link = /http:\/\/localhost:\d+\/connect\/[\w-]+/.exec(first)?.[0] ?? '';
  expect(first).toContain('Call import_records again with the same arguments');
  expect(link).not.toBe('');
  // The same work, the same link: nothing is started twice.
  expect(await told()).toBe(first);
  await openPerson().signInEverywhere(link, { as: 'alice' });
  expect(await plain.call('import_records')).toMatchObject({
    kind: 'result',
    result: { structuredContent: { records: 1_000 } },
  });

  // With a handle, the link stands in the message of the task.
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const polling = await client('bob', { name: 'plain-host', capabilities }, lenient);
  const called = await polling.call('import_records');
  if (called.kind !== 'task') throw new Error('no handle came');
  const { taskId } = called.task;
  await expect.poll(async () => (await polling.get(taskId)).statusMessage).toMatch(/\/connect\/[\w-]+/);
  expect(await polling.get(taskId)).toMatchObject({ status: 'input_required', inputRequests: {} });

  // Every other client is refused as ever.
  const other = await client('bob', { name: 'other-host', capabilities: { elicitation: {} } }, lenient);
  await expect(other.call('import_records')).rejects.toMatchObject({ code: -32021 });
});
