/** The way out, by names: what counts is the address that a name has at the moment of the connection. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LookupAddress } from 'node:dns';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openEgress } from '../../src/provider/egress.ts';

const names = vi.hoisted(() => new Map<string, { address: string; family: number }[][]>());

vi.mock('node:dns', async (original) => ({
  ...(await original<typeof import('node:dns')>()),
  // Each look-up of a name takes its next answer; the last one stays.
  lookup(name: string, _options: unknown, done: (error: Error | null, addresses: LookupAddress[]) => void) {
    const answers = names.get(name) ?? [];
    done(null, (answers.length > 1 ? answers.shift() : answers[0]) ?? []);
  },
}));

const loopback = { address: '127.0.0.1', family: 4 };
let connections = 0;
const server = createServer((_, response) => response.end('inside'));
let port = 0;

beforeAll(async () => {
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

const egress = openEgress({ allowPrivate: [], timeoutMs: 1_000, maxBodyBytes: 1_000 });
afterAll(() => egress.close());

test('a name that means a private address is refused', async () => {
  names.set('inside.example', [[loopback]]);
  await expect(egress.fetch(`https://inside.example:${port}/`)).rejects.toMatchObject({
    reason: 'egress_forbidden',
  });
});

test('a name that meant nothing private the first time is refused the second time', async () => {
  names.set('rebound.example', [[], [loopback]]);
  await expect(egress.fetch(`https://rebound.example:${port}/`)).rejects.toMatchObject({
    reason: 'egress_forbidden',
  });
  await expect(egress.fetch(`https://rebound.example:${port}/`)).rejects.toMatchObject({
    reason: 'egress_forbidden',
  });
});

test.each([
  ['mapped', '::ffff:127.0.0.1'],
  ['translated', '64:ff9b::7f00:1'],
  ['link-local', 'fe80::1'],
  ['a metadata service', '169.254.169.254'],
])('a name that means a private address in another form (%s) is refused', async (_, address) => {
  names.set('form.example', [[{ address, family: address.includes(':') ? 6 : 4 }]]);
  await expect(egress.fetch(`https://form.example:${port}/`)).rejects.toMatchObject({
    reason: 'egress_forbidden',
  });
});

test('no connection ever reached the inside', () => {
  expect(connections).toBe(0);
});
