/** A public URL with a path: whatever stands in front may keep the prefix or take it away. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openKeyturn, type Keyturn } from '../../src/app.ts';
import { readConfig, type ConfigInput } from '../../src/config.ts';
import { generateKey } from '../../src/vault/keyring.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'keyturn-prefix-'));
const config: ConfigInput = {
  name: 'Acme',
  publicUrl: 'https://acme.example/auth',
  issuer: { url: 'https://login.acme.example', client: { id: 'keyturn' } },
  ledger: { file: join(folder, 'ledger.sqlite') },
  log: { level: 'silent' },
};
let keyturn: Keyturn;

beforeAll(async () => {
  const KEYTURN_VAULT_KEYS = generateKey().entry.reveal();
  keyturn = await openKeyturn(readConfig(config), { env: { KEYTURN_VAULT_KEYS } });
});

afterAll(async () => {
  await keyturn.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Each refusal has a number of its own, and each form a token. */
const lasting = (body = ''): string => body.replaceAll(/<code>\w+<\/code>|name="csrf" value="[\w-]+"/g, '');

describe.each(['', '/auth'])('below the prefix "%s" as it arrives', (prefix) => {
  test.each(['/', '/connections', '/connect/nothing', '/healthz', '/.well-known/oauth-protected-resource'])(
    '%s is answered the same',
    async (path) => {
      const [kept, stripped] = await Promise.all(
        [`${prefix}${path}`, path].map((url) =>
          keyturn.app.inject({ url, headers: { accept: 'text/html' } }),
        ),
      );
      expect(kept?.statusCode).toBe(stripped?.statusCode);
      expect(lasting(kept?.body)).toBe(lasting(stripped?.body));
      expect(kept?.statusCode).not.toBe(500);
    },
  );

  test('the MCP endpoint names the metadata below the prefix', async () => {
    const answer = await keyturn.app.inject({ method: 'POST', url: `${prefix}/mcp`, payload: {} });
    expect(answer.statusCode).toBe(401);
    expect(answer.headers['www-authenticate']).toContain(
      'resource_metadata="https://acme.example/auth/.well-known/oauth-protected-resource"',
    );
  });
});

test('a path that only begins like the prefix is not taken for it', async () => {
  const answer = await keyturn.app.inject({ url: '/authority/healthz' });
  expect(answer.statusCode).toBe(404);
});

test('no route of ours may be the prefix', () => {
  const tree = keyturn.app.printRoutes({ commonPrefix: false });
  const segments = new Set([...tree.matchAll(/^ {4}[├└]── ([^ /]+)/gm)].map(([, segment = '']) => segment));
  expect(segments.size).toBe(10);
  for (const segment of segments) {
    expect(() => readConfig({ ...config, publicUrl: `https://acme.example/${segment}/x` })).toThrow(
      `publicUrl: "/${segment}" is a path of Keyturn's own`,
    );
  }
});
