import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { openKeyturn } from '../../src/app.ts';
import { readConfig, readSecret, type ConfigInput } from '../../src/config.ts';
import { defineJob, defineTool, text } from '../../src/engine/define.ts';
import { Refusal } from '../../src/errors.ts';

const folder = mkdtempSync(join(tmpdir(), 'keyturn-config-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const good: ConfigInput = {
  name: 'Acme',
  publicUrl: 'https://mcp.acme.example',
  issuer: { url: 'https://login.acme.example', client: { id: 'keyturn' } },
  ledger: { file: join(folder, 'ledger.sqlite') },
};

/** The problems of a configuration, one a line. */
function problemsOf(input: unknown): string[] {
  try {
    readConfig(input);
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).reason).toBe('configuration_invalid');
    return (error as Refusal).facts['problems'] as string[];
  }
  return [];
}

test('a small configuration is enough, and everything else has a value', () => {
  const config = readConfig(good);
  expect(config.issuer.subjectClaim).toBe('sub');
  expect(config.limits.workers).toBeGreaterThan(0);
  expect(config.delivery.textLink).toBe(false);
});

test('every problem is reported at once, each with its path', () => {
  const problems = problemsOf({
    ...good,
    name: '',
    publicUrl: 'http://mcp.acme.example',
    issuer: { url: 'nonsense', client: { id: 'keyturn' }, subjectClaim: 'email' },
    limits: { workers: 0 },
    colour: 'blue',
  });
  const paths = problems.map((line) => line.slice(0, line.indexOf(':')));
  expect(paths).toEqual(
    expect.arrayContaining([
      'name',
      'publicUrl',
      'issuer.url',
      'issuer.subjectClaim',
      'limits.workers',
      'colour',
    ]),
  );
});

test.each([
  ['missing', undefined, /publicUrl: is missing/],
  ['plain http on a public host', 'http://mcp.acme.example', /publicUrl: must be https/],
  ['with a query', 'https://mcp.acme.example/?a=b', /publicUrl: must have no query/],
  ['not a URL', 'mcp.acme.example', /publicUrl: must be an absolute URL/],
])('a public URL that is %s is refused', (_, publicUrl, problem) => {
  expect(problemsOf({ ...good, publicUrl }).join('\n')).toMatch(problem);
});

test.each(['http://localhost:3000', 'http://127.0.0.1:3000', 'http://[::1]:3000'])(
  'plain http is fine on loopback: %s',
  (publicUrl) => {
    expect(problemsOf({ ...good, publicUrl })).toEqual([]);
  },
);

test('an unknown field is named, at any depth', () => {
  expect(problemsOf({ ...good, issuer: { ...good.issuer, audiance: 'x' } })).toEqual([
    'issuer.audiance: is not a setting; check its spelling',
  ]);
});

test('a job that requires a provider that is not configured is refused by name', () => {
  const job = defineJob({
    name: 'count',
    description: 'Counts.',
    requires: { github: {} },
    run: () => Promise.resolve(text('0')),
  });
  expect(problemsOf({ ...good, tools: [job] }).join()).toContain('tools.0.requires.github');
});

test('two tools of one name are refused', () => {
  const tool = defineTool({ name: 'greet', description: 'Greets.', run: () => text('hello') });
  expect(problemsOf({ ...good, tools: [tool, tool] }).join()).toContain('tools.1.name');
});

test('a provider without a client id or secret says what is missing', () => {
  const problems = problemsOf({ ...good, providers: { github: { preset: 'github' } } }).join('\n');
  expect(problems).toContain('providers.github.clientId');
  expect(problems).toContain('providers.github.clientSecret');
});

test('a secret comes from the environment or a file, and a missing one names the setting and never a value', () => {
  const file = join(folder, 'secret');
  writeFileSync(file, ' from-a-file\n');
  expect(readSecret({ file }, 'x').reveal()).toBe('from-a-file');
  expect(readSecret({ env: 'A' }, 'x', { A: 'from-env' }).reveal()).toBe('from-env');
  expect(inspect(readSecret({ env: 'A' }, 'x', { A: 'from-env' }))).not.toContain('from-env');
  expect(() => readSecret({ env: 'B' }, 'providers.github.clientSecret', {})).toThrow(
    /providers\.github\.clientSecret: .*B is not set/,
  );
  expect(() => readSecret({ file: join(folder, 'none') }, 'vault.keys')).toThrow(/vault\.keys/);
});

test.each([
  ['missing', {}],
  ['too short', { KEYTURN_VAULT_KEYS: 'abc' }],
])('the server does not start with a vault key that is %s', async (_, env) => {
  await expect(openKeyturn(readConfig(good), { env })).rejects.toMatchObject({ name: 'Refusal' });
});
