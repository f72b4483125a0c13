/** MCP Inspector: its one-shot `--cli`, which shows nobody a link, and `mcpdo`, which does and keeps its connections. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IMPORTED, linkIn, openClientWorld, runProgram } from '../support/client-world.ts';

const { resolve } = createRequire(import.meta.url);
const clients = join(dirname(resolve('@modelcontextprotocol/inspector/package.json')), 'clients');
const CLI = join(clients, 'launcher', 'build', 'index.js');
const MCPDO = join(clients, 'mcpdo', 'build', 'mcp-bin.js');

let server: Awaited<ReturnType<typeof openClientWorld>>;
let lenient: typeof server;
/** Where the Inspector keeps its things. */
const home = mkdtempSync(join(tmpdir(), 'keyturn-insp-'));
const env = { HOME: home, MCP_INSPECTOR_SECRET_STORE: 'file' };

beforeAll(async () => {
  server = await openClientWorld();
  lenient = await openClientWorld({ delivery: { textLink: ['inspector-cli'] } });
});

afterAll(async () => {
  await runProgram(MCPDO, ['daemon', 'stop'], env);
  await Promise.all([server.close(), lenient.close()]);
  rmSync(home, { recursive: true, force: true });
});

async function cli(at: typeof server, era: string) {
  const header = `Authorization: Bearer ${await at.token('alice', `cli-${era}`)}`;
  const where = ['--server-url', at.url, '--transport', 'http', '--header', header, '--protocol-era', era];
  return () =>
    runProgram(CLI, ['--cli', ...where, '--method', 'tools/call', '--tool-name', 'import_records'], env);
}

test.each([
  { era: 'legacy', revision: '2025-11-25' },
  { era: 'modern', revision: '2026-07-28' },
])('the CLI ($revision) shows no links: it says so, and what to do about it', async ({ era, revision }) => {
  const call = await cli(server, era);
  const { code, out, err } = await call();
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toContain('sign in at Paperboat');
  expect(err).toContain('Use a client that does, or ask the operator of this server');
  expect(err).not.toContain('/connect/');
  expect(server.takeSpoken()).toEqual([revision]);
});

test('the CLI is given the link as text where the operator allows it, and the same call again gives the result', async () => {
  const call = await cli(lenient, 'legacy');
  const first = await call();
  expect(first.code).toBe(0);
  expect(first.out).toContain('Call import_records again with the same arguments');
  await lenient.signIn(linkIn(first.out), 'alice');
  expect((await call()).out).toContain('"records": 1000');
});

test.each([
  { era: 'legacy', how: 'a call', revision: '2025-11-25', as: 'alice', more: [] },
  { era: 'legacy', how: 'a task', revision: '2025-11-25', as: 'bob', more: ['--task'] },
  { era: 'modern', how: 'a task', revision: '2026-07-28', as: 'alice', more: [] },
])(
  'mcpdo ($revision, $how) shows the link, and goes on to the result when told that the person is done',
  async ({ era, how, revision, as, more }) => {
    const header = `Authorization: Bearer ${await server.token(as, `mcpdo-${era}-${how}`)}`;
    const mcpdo = (...args: readonly string[]) =>
      runProgram(MCPDO, ['--format', 'json', '--connection', server.url, ...args], env);
    await runProgram(
      MCPDO,
      ['connect', server.url, '--transport', 'http', '--header', header, '--era', era],
      env,
    );
    const called = await mcpdo('tools/call', 'import_records', ...more);
    const { elicitationPending } = JSON.parse(called.out) as {
      elicitationPending: { elicitationId: string; mode: string; message: string; url: string };
    };
    expect(elicitationPending.mode).toBe('url');
    expect(elicitationPending.message).toContain('needs you to sign in at Paperboat');
    await server.signIn(elicitationPending.url, as);
    const answered = await mcpdo('elicitation/respond', elicitationPending.elicitationId, '--done');
    expect(JSON.parse(answered.out)).toMatchObject({ content: [{ type: 'text', text: IMPORTED }] });
    expect(server.takeSpoken()).toEqual([revision]);
  },
);
