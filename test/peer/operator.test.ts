/** The operator's commands, as processes of their own beside a running server. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { openHost, type Host } from '../../src/sandbox/mcp-client.ts';
import { generateKey } from '../../src/vault/keyring.ts';
import { freePort, openWorld, worldConfig, type World } from '../../src/world.ts';

const CLI = new URL('../../src/cli.ts', import.meta.url).pathname;
const [old, next] = [generateKey(), generateKey()];
const both = `${old.entry.reveal()},${next.entry.reveal()}`;

let folder: string;
let world: World;
let host: Host;
let env: Record<string, string>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'keyturn-operator-'));
  const port = await freePort();
  world = await openWorld({
    port,
    folder,
    // The new key stands last on every node before it is first on any.
    env: { KEYTURN_VAULT_KEYS: both },
    config: { log: { level: 'silent' }, timing: { sweepEveryMs: 100 } },
  });
  const made = worldConfig({ ...world, port, folder, vaultKeys: both });
  const { tools: _tools, ...config } = made.config;
  writeFileSync(join(folder, 'keyturn.config.json'), JSON.stringify({ ...config, log: { level: 'silent' } }));
  ({ env } = made);
  host = await openHost({ mcpUrl: world.mcpUrl, accessToken: await accessToken() });
});

afterEach(async () => {
  await host.close();
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

function accessToken(): Promise<string> {
  return world.sandbox.issuer.issueAccessToken({
    sub: 'alice',
    clientId: 'test',
    scope: 'mcp:tools',
    resource: world.mcpUrl,
    expiresInSeconds: 3_600,
  });
}

/** Runs a command in the folder of the configuration. */
function keyturn(args: string[], keys = both, cwd = folder): Promise<{ code: number; out: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [CLI, ...args],
      { cwd, env: { ...env, PATH: process.env['PATH'], KEYTURN_VAULT_KEYS: keys } },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, out: `${stdout}${stderr}` }),
    );
  });
}

const owner = () => ownerOf({ issuer: world.sandbox.issuer.issuer, subject: 'alice' });

async function waitingTask(): Promise<{ taskId: string; link: string }> {
  const task = await host.start('import_records');
  const waiting = await host.until(task.taskId, ['input_required']);
  return {
    taskId: task.taskId,
    link: String(Object.values(waiting.inputRequests ?? {})[0]?.params['url']),
  };
}

async function importOnce(): Promise<string> {
  const { taskId, link } = await waitingTask();
  await openPerson().signInEverywhere(link, { as: 'alice' });
  await host.until(taskId, ['completed']);
  return taskId;
}

test('a vault key is replaced while the server runs, and the old one leaves when nothing needs it', async () => {
  await importOnce();
  const reversed = `${next.entry.reveal()},${old.entry.reveal()}`;
  expect((await keyturn(['keys', 'list'], reversed)).out.split('\n').slice(0, 2)).toEqual([
    `${next.kid}\tcurrent\t0 sealed grants\t0 open links`,
    `${old.kid}\tprevious\t1 sealed grants\t0 open links`,
  ]);
  const early = await keyturn(['keys', 'retire', old.kid], reversed);
  expect(early).toEqual({ code: 1, out: expect.stringContaining('run keyturn keys rewrap') as string });
  const refused = await keyturn(['keys', 'list'], next.entry.reveal());
  expect(refused).toEqual({ code: 1, out: expect.stringContaining('still in use') as string });

  expect(await keyturn(['keys', 'rewrap'], reversed)).toEqual({
    code: 0,
    out: `1 sealed grants moved to the key "${next.kid}"\n`,
  });
  // The server goes on with the record that it finds: nobody signs in again.
  world.sandbox.saas.expireAccessTokens();
  const again = await host.start('import_records', {}, 'again');
  expect((await host.until(again.taskId, ['completed', 'input_required'])).status).toBe('completed');

  // It refreshed under its own current key, the old one: once more, as the last node of a rotation would be.
  expect((await keyturn(['keys', 'rewrap'], reversed)).code).toBe(0);
  expect(await keyturn(['keys', 'retire', old.kid], reversed)).toEqual({
    code: 0,
    out: expect.stringContaining('take it out') as string,
  });
  expect((await keyturn(['keys', 'retire', next.kid], reversed)).code).toBe(1);
  expect((await keyturn(['keys', 'retire', 'k-none'], reversed)).code).toBe(1);
  expect((await keyturn(['keys', 'list'], next.entry.reveal())).code).toBe(0);
});

test('a key that an open link was made with stays until the link is over', async () => {
  await waitingTask();
  const reversed = `${next.entry.reveal()},${old.entry.reveal()}`;
  const kept = await keyturn(['keys', 'retire', old.kid], reversed);
  expect(kept.code).toBe(1);
  expect(kept.out).toMatch(/1 open links .* is over at \d{4}-/);
});

test('a blocked person has no tasks until they are readmitted; an erased one leaves only the audit log', async () => {
  const done = await importOnce();
  await world.keyturn.engine.offBoarding.endAll({ owner: owner() }, 'test');
  const { taskId } = await waitingTask();
  expect(await keyturn(['owners', 'block', '--owner', owner()])).toEqual({
    code: 0,
    out: 'blocked; 1 tasks ended\n',
  });
  expect((await host.get(taskId)).status).toBe('cancelled');
  await expect(host.start('import_records', {}, 'blocked')).rejects.toThrow(/limit/);
  expect((await keyturn(['owners', 'readmit', '--owner', owner()])).code).toBe(0);
  const readmitted = await host.start('import_records', {}, 'readmitted');
  const waiting = await host.until(readmitted.taskId, ['input_required']);
  const link = Object.values(waiting.inputRequests ?? {})[0]?.params['url'];
  await openPerson().signInEverywhere(String(link), { as: 'alice' });
  await host.until(readmitted.taskId, ['completed']);

  expect((await keyturn(['owners', 'erase', '--owner', owner()])).out).toMatch(/^erased; [1-9]\d* rows went/);
  await expect(host.get(done)).rejects.toThrow();
  const { ledger } = world.keyturn;
  expect(await ledger.readRecords('paperboat-records', owner(), { afterId: '', limit: 1 })).toEqual([]);
  expect(await ledger.findConnections({ owner: owner(), after: '', limit: 10 })).toEqual([]);
  const audit = (await keyturn(['audit-log', 'export'])).out;
  for (const event of ['person.signed in', 'owner.blocked', 'owner.readmitted', 'owner.erased']) {
    expect(audit).toContain(`"event":"${event}"`);
  }
  expect((await keyturn(['audit-log', 'verify'])).code).toBe(0);
});

test('connections are listed and ended, and nothing is said by silence', async () => {
  expect(await keyturn(['connections', 'list'])).toEqual({ code: 0, out: 'no connections\n' });
  await importOnce();
  expect((await keyturn(['connections', 'list', '--provider', 'paperboat'])).out).toContain(
    '\tpaperboat\tdefault\tactive\tgeneration 1\t',
  );
  expect(await keyturn(['connections', 'revoke'])).toMatchObject({ code: 2 });
  expect(await keyturn(['connections', 'revoke', '--owner', owner()])).toEqual({
    code: 0,
    out: '1 connections ended\n',
  });
});

describe('doctor', () => {
  test('proves by a real sign-in that chat and browser know a person by the same name', async () => {
    expect((await keyturn(['doctor'])).out).toContain('warning  people           not proved yet');
    const token = join(folder, 'token');
    writeFileSync(token, await accessToken());
    const before = await keyturn(['doctor', '--token', token]);
    expect(before).toMatchObject({ code: 1 });
    expect(before.out).toMatch(/failed {3}people {11}nobody of the name in the access token/);
    await importOnce();
    const after = await keyturn(['doctor', '--token', token]);
    expect(after).toMatchObject({ code: 0 });
    expect(after.out).toContain(
      'ok       people           the access token and a browser sign-in name the same',
    );
    expect((await keyturn(['doctor'])).out).toContain(
      'ok       people           1 are known by the same name',
    );
    writeFileSync(token, `${await accessToken()}x`);
    expect((await keyturn(['doctor', '--token', token])).out).toContain('the access token is refused');
  });

  test('makes no ledger where there is none, and other commands say so', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'keyturn-empty-'));
    const config = worldConfig({ ...world, port: 1, folder: empty, vaultKeys: both }).config;
    const { tools: _tools, ...plain } = config;
    writeFileSync(join(empty, 'keyturn.config.json'), JSON.stringify(plain));
    const looked = await keyturn(['doctor'], both, empty);
    expect(looked.out).toContain('ok       ledger           is not there yet');
    const listed = await keyturn(['connections', 'list'], both, empty);
    expect(listed).toEqual({ code: 1, out: expect.stringContaining('ledger.file: there is no') as string });
    expect(existsSync(join(empty, 'keyturn.sqlite'))).toBe(false);
    rmSync(empty, { recursive: true });
  });

  test('tells trouble of the vault from trouble of the ledger', async () => {
    await importOnce();
    const wrong = await keyturn(['doctor'], generateKey().entry.reveal());
    expect(wrong.code).toBe(1);
    expect(wrong.out).toMatch(/^ok {7}ledger/m);
    expect(wrong.out).toMatch(/^failed {3}vault .*still in use/m);
    const none = await keyturn(['doctor'], '');
    expect(none.out).toMatch(/^failed {3}secrets .*KEYTURN_VAULT_KEYS/m);
  });
});
