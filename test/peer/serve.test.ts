import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { generateKey } from '../../src/vault/keyring.ts';
import { freePort } from '../../src/world.ts';

test('a server that is told to end does end, though a job of it goes on and on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-serve-'));
  const file = join(folder, 'keyturn.config.ts');
  const port = await freePort();
  const config = {
    name: 'Ends',
    publicUrl: `http://localhost:${port}`,
    listen: { port },
    issuer: { url: 'http://127.0.0.2:1', client: { id: 'x' } },
    ledger: { file: join(folder, 'keyturn.sqlite') },
    log: { level: 'silent' },
  };
  // What a job that does not listen to its signal leaves behind.
  writeFileSync(file, `setInterval(() => {}, 1_000);\nexport default ${JSON.stringify(config)};\n`);
  const server = spawn(
    process.execPath,
    [new URL('../../src/cli.ts', import.meta.url).pathname, 'serve', '--config', file],
    {
      env: { PATH: process.env['PATH'], KEYTURN_VAULT_KEYS: generateKey().entry.reveal() },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  try {
    await once(server.stdout, 'data');
    const startedAt = performance.now();
    server.kill('SIGTERM');
    const [code] = (await once(server, 'exit', { signal: AbortSignal.timeout(10_000) })) as [number | null];
    expect(code).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  } finally {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
