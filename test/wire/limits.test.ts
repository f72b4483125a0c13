import { afterEach, expect, test } from 'vitest';
import { openWorld, type World } from '../../src/world.ts';

let world: World | undefined;

afterEach(async () => {
  await world?.close();
});

test('a caller that asks too often is told to wait, and another caller is not', async () => {
  world = await openWorld({ config: { limits: { requestsPerMinute: 3 }, log: { level: 'silent' } } });
  const { mcpUrl, sandbox } = world;
  const ask = async (sub: string) => {
    const token = await sandbox.issuer.issueAccessToken({
      sub,
      clientId: 'test',
      scope: 'mcp:tools',
      resource: mcpUrl,
      expiresInSeconds: 60,
    });
    const answer = await fetch(mcpUrl, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{}',
    });
    return answer.status;
  };
  const alice = [await ask('alice'), await ask('alice'), await ask('alice'), await ask('alice')];
  expect(alice.slice(0, 3)).not.toContain(429);
  expect(alice[3]).toBe(429);
  expect(await ask('bob')).not.toBe(429);
});

test('an address that opens pages too often gets a page that says so', async () => {
  world = await openWorld({ config: { limits: { pagesPerMinute: 2 }, log: { level: 'silent' } } });
  const open = async () =>
    fetch(`${world?.publicUrl}/`, { headers: { 'x-forwarded-for': String(Math.random()) } });
  await open();
  await open();
  const third = await open();
  expect(third.status).toBe(429);
  expect(third.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await third.text()).toContain('<h1>');
});
