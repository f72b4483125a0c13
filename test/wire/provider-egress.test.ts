/** The way out, on real sockets: what it refuses to reach, and what it does with servers that are slow, big or broken. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSocketServer, type AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { openEgress, type Egress } from '../../src/provider/egress.ts';

const servers: { close(): unknown; closeAllConnections?(): void }[] = [];
const ways: Egress[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.();
    server.close();
  }
  await Promise.all(ways.splice(0).map((egress) => egress.close()));
});

async function listen(
  listener: RequestListener,
): Promise<{ origin: string; port: number; server: Server; count: () => number }> {
  let connections = 0;
  const server = createServer(listener);
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port, server, count: () => connections };
}

function open(allowPrivate: string[] = [], more: { timeoutMs?: number; maxBodyBytes?: number } = {}): Egress {
  const egress = openEgress({ allowPrivate, timeoutMs: 2_000, maxBodyBytes: 10_000, ...more });
  ways.push(egress);
  return egress;
}

const forbidden = expect.objectContaining({ reason: 'egress_forbidden' });

function unavailable(facts: Record<string, unknown>): unknown {
  return expect.objectContaining({ reason: 'provider_unavailable', facts: expect.objectContaining(facts) });
}

describe('a private place', () => {
  test('is refused over plain http without a connection', async () => {
    const inside = await listen((_, response) => response.end('secret'));
    await expect(open().fetch(inside.origin)).rejects.toEqual(forbidden);
    expect(inside.count()).toBe(0);
  });

  test.each([
    ['a literal address', '127.0.0.1'],
    ['a number', '2130706433'],
    ['a hexadecimal number', '0x7f000001'],
    ['an octal number', '0177.0.0.1'],
    ['a short form', '127.1'],
    ['an IPv6 address', '[::1]'],
    ['an IPv4-mapped address', '[::ffff:127.0.0.1]'],
    ['a name that resolves to loopback', 'localhost'],
  ])('is refused as %s (%s) without a connection', async (_, host) => {
    const inside = await listen((__, response) => response.end('secret'));
    await expect(open().fetch(`https://${host}:${inside.port}/`)).rejects.toEqual(forbidden);
    expect(inside.count()).toBe(0);
  });

  test.each(['169.254.169.254', '100.64.0.1', '10.0.0.1', '[64:ff9b::a9fe:a9fe]', '[fd00:ec2::254]'])(
    'is refused at %s, at once',
    async (host) => {
      const before = performance.now();
      await expect(open().fetch(`https://${host}/latest/meta-data/`)).rejects.toEqual(forbidden);
      expect(performance.now() - before).toBeLessThan(5_000);
    },
  );

  test('is reached when the configuration names its origin, and no other port of the same host', async () => {
    const [named, other] = [await listen((_, r) => r.end('yes')), await listen((_, r) => r.end('no'))];
    const egress = open([named.origin]);
    await expect((await egress.fetch(named.origin)).text()).resolves.toBe('yes');
    await expect(egress.fetch(other.origin)).rejects.toEqual(forbidden);
    expect(other.count()).toBe(0);
  });

  test.each(['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'data:text/plain,x'])(
    '%s is not https and is refused',
    async (url) => {
      await expect(open().fetch(url)).rejects.toEqual(forbidden);
    },
  );

  test('is not reached with a user in the address, even where it is named', async () => {
    const named = await listen((_, response) => response.end());
    const url = named.origin.replace('http://', 'http://user:pass@');
    await expect(open([named.origin]).fetch(url)).rejects.toEqual(forbidden);
  });
});

test('redirects come back as they are', async () => {
  let asked = 0;
  const server = await listen((_, response) => {
    asked += 1;
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  const answer = await open([server.origin]).fetch(server.origin, {
    headers: { authorization: 'Bearer at-1' },
  });
  expect(answer.status).toBe(302);
  expect(answer.headers.get('location')).toBe('/elsewhere');
  expect(asked).toBe(1);
});

test('proxy variables of the environment change nothing', async () => {
  const proxy = await listen((_, response) => response.end('proxied'));
  const server = await listen((_, response) => response.end('direct'));
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', 'ALL_PROXY'];
  const before = names.map((name) => process.env[name]);
  for (const name of names) process.env[name] = proxy.origin;
  try {
    await expect((await open([server.origin]).fetch(server.origin)).text()).resolves.toBe('direct');
  } finally {
    for (const [index, name] of names.entries()) {
      const value = before[index];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
  expect(proxy.count()).toBe(0);
});

describe('a server in trouble', () => {
  test('that nobody listens at: the request was not sent', async () => {
    const server = await listen(() => undefined);
    await new Promise((resolve) => server.server.close(resolve));
    await expect(open([server.origin]).fetch(server.origin)).rejects.toEqual(unavailable({ sent: false }));
  });

  test('that never answers: the request may have arrived', async () => {
    const server = await listen(() => undefined);
    const egress = open([server.origin], { timeoutMs: 150 });
    await expect(egress.fetch(server.origin)).rejects.toEqual(unavailable({ sent: true }));
  });

  test('that sends a body for ever is given up after the time limit of the whole', async () => {
    const server = await listen((_, response) => {
      response.write('a');
      const timer = setInterval(() => response.write('a'), 20);
      response.on('close', () => clearInterval(timer));
    });
    const answer = await open([server.origin], { timeoutMs: 200 }).fetch(server.origin);
    const before = performance.now();
    await expect(answer.text()).rejects.toEqual(unavailable({ sent: true }));
    expect(performance.now() - before).toBeLessThan(5_000);
  });

  test('that cuts the connection: the request may have arrived', async () => {
    const server = await listen((request) => request.socket.destroy());
    await expect(open([server.origin]).fetch(server.origin)).rejects.toEqual(unavailable({ sent: true }));
  });

  test('that speaks no HTTP: the request may have arrived', async () => {
    const server = createSocketServer((socket) => socket.end('220 mail ready\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(open([origin]).fetch(origin)).rejects.toEqual(unavailable({ sent: true }));
  });

  test('that announces too much is not read', async () => {
    const server = await listen((_, response) =>
      response.writeHead(200, { 'content-length': '10001' }).end(),
    );
    await expect(open([server.origin]).fetch(server.origin)).rejects.toEqual(
      unavailable({ code: 'too_large' }),
    );
  });

  test('that sends too much is cut off where it does', async () => {
    const server = await listen((_, response) => {
      for (let part = 0; part < 20; part += 1) response.write('a'.repeat(1_000));
      response.end();
    });
    const answer = await open([server.origin]).fetch(server.origin);
    await expect(answer.text()).rejects.toEqual(unavailable({ code: 'too_large' }));
  });

  test('that sends a little which unpacks to much is cut off as well', async () => {
    const packed = gzipSync('a'.repeat(5_000_000));
    expect(packed.length).toBeLessThan(10_000);
    const server = await listen((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length }).end(packed);
    });
    const answer = await open([server.origin]).fetch(server.origin);
    await expect(answer.text()).rejects.toEqual(unavailable({ code: 'too_large' }));
  });
});

test('the caller’s own abort stays the caller’s', async () => {
  const server = await listen(() => undefined);
  const aborter = new AbortController();
  const why = new Error('the task was cancelled');
  const asked = open([server.origin]).fetch(server.origin, { signal: aborter.signal });
  setTimeout(() => aborter.abort(why), 50);
  await expect(asked).rejects.toBe(why);
});
