/** The packed package, in a project that has only what a production install brings. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generateKey } from '../../src/vault/keyring.ts';
import { freePort } from '../../src/world.ts';

const root = new URL('../..', import.meta.url).pathname;
const project = mkdtempSync(join(tmpdir(), 'keyturn-package-'));
const command = join(project, 'node_modules/keyturn/dist/src/cli.js');
const examples = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g)].map(
  (match) => match[1] ?? '',
);
const env = {
  PATH: process.env['PATH'],
  KEYTURN_VAULT_KEYS: generateKey().entry.reveal(),
  ISSUER_CLIENT_SECRET: 'of the issuer',
  GITHUB_CLIENT_SECRET: 'of github',
};

beforeAll(() => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  execFileSync('npm', ['pack', '--silent', '--pack-destination', project], { cwd: root });
  const home = join(project, 'node_modules/keyturn');
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['-xzf', join(project, 'keyturn-0.1.0.tgz'), '-C', home, '--strip-components=1']);
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
}, 120_000);

afterAll(() => rmSync(project, { recursive: true, force: true }));

test('the examples of the README fit the types of the package', () => {
  expect(examples).toHaveLength(2);
  examples.forEach((example, index) => writeFileSync(join(project, `example-${index}.ts`), example));
  const options = ['--noEmit', '--strict', '--target', 'es2024', '--module', 'nodenext', '--types', 'node'];
  const typeRoots = ['--typeRoots', join(root, 'node_modules/@types'), '--skipLibCheck'];
  const check = (files: string[]): string => {
    try {
      execFileSync(join(root, 'node_modules/.bin/tsc'), [...options, ...typeRoots, ...files], {
        cwd: project,
        encoding: 'utf8',
      });
      return '';
    } catch (error) {
      return String((error as { stdout?: string }).stdout);
    }
  };
  expect(check(['example-0.ts', 'example-1.ts'])).toBe('');
  // A setting that does not exist is found by the types already.
  writeFileSync(join(project, 'misspelt.ts'), (examples[0] ?? '').replace('publicUrl', 'publicUri'));
  expect(check(['misspelt.ts'])).toContain('publicUri');
});

test('it serves what the README configures', async () => {
  const port = await freePort();
  const config = (examples[0] ?? '')
    .replace('https://mcp.acme.example', `http://localhost:${port}`)
    .replace("name: 'Acme MCP',", `name: 'Acme MCP', listen: { port: ${port} },`);
  writeFileSync(join(project, 'keyturn.config.ts'), config);
  const server = spawn(process.execPath, [command, 'serve'], { cwd: project, env });
  try {
    await said(server, 'ingest_github_issues');
    expect((await fetch(`http://localhost:${port}/readyz`)).status).toBe(200);
    server.kill('SIGTERM');
    const [code] = (await once(server, 'exit')) as [number | null];
    expect(code).toBe(0);
  } finally {
    server.kill('SIGKILL');
  }
});

test('it says what the sandbox would need', async () => {
  for (const args of [['serve', '--sandbox'], ['demo']]) {
    const server = spawn(process.execPath, [command, ...args], { cwd: project, env });
    const ended = once(server, 'exit');
    await said(server, 'npm install --no-save oidc-provider');
    expect((await ended)[0]).toBe(1);
  }
});

/** Resolves once a command has written these words, to either stream. */
async function said(child: ChildProcess, words: string): Promise<void> {
  let text = '';
  await new Promise<void>((resolve, reject) => {
    const hear = (data: Buffer): void => {
      text += data.toString();
      if (text.includes(words)) resolve();
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.once('exit', () => reject(new Error(`ended without "${words}": ${text}`)));
    child.once('error', reject);
  });
}
