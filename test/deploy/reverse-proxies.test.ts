/**
 * The reverse proxies of `deploy/`, for real and over TLS: links, redirect URIs and cookies are made of the configured
 * public URL alone, whatever a client puts into forwarding headers.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openHost, type Host } from '../../src/sandbox/mcp-client.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { freePort, openWorld, type World } from '../../src/world.ts';
import {
  isInstalled,
  makeCertificate,
  startReverseProxy,
  type ReverseProxy,
  type ReverseProxyOptions,
} from '../support/reverse-proxy.ts';

const folder = mkdtempSync(join(tmpdir(), 'keyturn-tls-'));
const trusted = getCACertificates();
afterAll(() => {
  setDefaultCACertificates(trusted);
  rmSync(folder, { recursive: true, force: true });
});

const FORGED = {
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'http',
  'x-forwarded-port': '1',
  'x-forwarded-prefix': '/evil',
  forwarded: 'host=evil.example;proto=http',
};

const PROXIES: [string, string, Pick<ReverseProxyOptions, 'file' | 'strips'>][] = [
  ['nginx with an origin of its own', '', { file: 'nginx/origin.conf' }],
  ['nginx that keeps a path prefix', '/auth', { file: 'nginx/prefix.conf' }],
  ['nginx that takes a path prefix away', '/auth', { file: 'nginx/prefix.conf', strips: true }],
  ['Caddy', '', { file: 'Caddyfile' }],
];

describe.each(PROXIES)('behind %s', (_name, prefix, kind) => {
  const installed = isInstalled(kind.file === 'Caddyfile' ? 'caddy' : 'nginx') && isInstalled('openssl');
  let world: World;
  let proxy: ReverseProxy;
  let host: Host;
  let publicUrl: string;

  beforeAll(async () => {
    if (!installed) return;
    const certificate = makeCertificate(folder);
    setDefaultCACertificates([...trusted, certificate.pem]);
    const [port, tlsPort] = [await freePort(), await freePort()];
    publicUrl = `https://localhost:${tlsPort}${prefix}`;
    world = await openWorld({
      port,
      publicUrl,
      config: {
        log: { level: 'silent' },
        trustedProxies: ['127.0.0.1'],
        limits: { pagesPerMinute: 60 },
      },
    });
    proxy = await startReverseProxy({ ...kind, port: tlsPort, upstreamPorts: [port], certificate });
    host = await openHost({
      mcpUrl: world.mcpUrl,
      accessToken: await world.sandbox.issuer.issueAccessToken({
        sub: 'alice',
        clientId: 'test',
        scope: 'mcp:tools',
        resource: world.mcpUrl,
        expiresInSeconds: 3_600,
      }),
    });
  });

  afterAll(async () => {
    if (!installed) return;
    await host.close();
    await proxy.close();
    await world.close();
  });

  /** One request with forged headers. */
  function send(path: string, headers: Record<string, string> = FORGED) {
    return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: string }>(
      (resolve, reject) => {
        const sent = request(`${publicUrl}${path}`, { headers, agent: false }, (answer) => {
          let body = '';
          answer.setEncoding('utf8');
          answer.on('data', (chunk: string) => (body += chunk));
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
        });
        sent.on('error', reject);
        sent.end();
      },
    );
  }

  test.skipIf(!installed)('a task is signed in and goes on; every address is the public one', async () => {
    const task = await host.start('import_records');
    const waiting = await host.until(task.taskId, ['input_required']);
    const link = String(Object.values(waiting.inputRequests ?? {})[0]?.params['url']);
    expect(link.startsWith(`${publicUrl}/connect/`)).toBe(true);

    const forged = await send(link.slice(publicUrl.length));
    expect(forged.body).not.toContain('evil.example');
    expect(forged.body).toContain(`action="${prefix}/`);

    const person = openPerson();
    const end = await person.signInEverywhere(link, { as: 'alice' });
    expect(end.status).toBe(200);
    expect((await host.until(task.taskId, ['completed'])).status).toBe('completed');

    const asked = person.visits.filter(({ url }) => url.startsWith(world.sandbox.saas.authorizationEndpoint));
    const redirectUris = new Set(
      asked.map(({ url }) => new URL(url).searchParams.get('redirect_uri')).filter((uri) => uri !== null),
    );
    // The provider compares it with the one of the exchange, byte for byte (RFC 6749, section 4.1.3).
    expect([...redirectUris]).toEqual([`${publicUrl}/callback/paperboat`]);
    for (const { url } of person.visits) {
      if (new URL(url).origin === new URL(publicUrl).origin)
        expect(url.startsWith(`${publicUrl}/`)).toBe(true);
    }
  });

  test.skipIf(!installed)(
    'cookies are __Host-, Secure and of the whole origin, forged headers or not',
    async () => {
      for (const headers of [FORGED, {}]) {
        const { headers: got } = await send('/connections', headers);
        const cookies = [got['set-cookie'] ?? []].flat();
        expect(cookies.length).toBeGreaterThan(0);
        for (const cookie of cookies) {
          expect(cookie).toMatch(/^__Host-/);
          expect(cookie).toMatch(/; Path=\/;/);
          expect(cookie).toMatch(/; Secure/);
          expect(cookie).toMatch(/; HttpOnly/);
          expect(cookie).not.toMatch(/Domain/i);
        }
      }
    },
  );

  test.skipIf(!installed)('a challenge names the metadata at the public URL, and it is there', async () => {
    const { status, headers } = await send('/mcp');
    expect(status).toBe(401);
    const at = /resource_metadata="([^"]+)"/.exec(String(headers['www-authenticate']))?.[1] ?? '';
    expect(at.startsWith(new URL(publicUrl).origin)).toBe(true);
    const document = await send(at.slice(publicUrl.length));
    expect(JSON.parse(document.body)).toMatchObject({ resource: world.mcpUrl });
  });

  test.skipIf(!installed)('what is for the inside is not shown outside', async () => {
    for (const path of ['/metrics', '/healthz', '/readyz']) expect((await send(path)).status).toBe(404);
  });

  test.skipIf(!installed)('no code, state or token is in the logs of the proxy', () => {
    const logs = proxy.logs();
    expect(logs).toContain('/callback/paperboat');
    expect(logs).not.toMatch(/[?&](?:code|state|iss)=/);
    for (const found of world.secrets()) expect(logs).not.toContain(found);
  });

  test.skipIf(!installed)('addresses that a client makes up do not help it over the limit', async () => {
    let refused = 0;
    for (let n = 0; n < 70; n += 1) {
      const { status } = await send('/', { 'x-forwarded-for': `198.51.100.${n}` });
      if (status === 429) refused += 1;
    }
    expect(refused).toBeGreaterThan(0);
  });
});
