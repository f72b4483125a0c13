/** People with a real browser get through the sandbox's two authorization servers. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts';
import { openChromium } from '../support/chromium.ts';

let browser: Browser;
let context: BrowserContext;
let keyturn: Server;
let publicUrl: string;
let sandbox: Sandbox;

beforeAll(async () => {
  browser = await openChromium();
  context = await browser.newContext();
  keyturn = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Back</title><p>back</p>');
  });
  await new Promise<void>((resolve) => keyturn.listen(0, '127.0.0.1', resolve));
  publicUrl = `http://127.0.0.1:${(keyturn.address() as AddressInfo).port}`;
  sandbox = await openSandbox({ mcpResource: `${publicUrl}/mcp`, keyturnPublicUrl: publicUrl });
});

afterAll(async () => {
  await browser.close();
  await sandbox.close();
  keyturn.closeAllConnections();
  await new Promise((resolve) => keyturn.close(resolve));
});

function authorizationUrl(endpoint: string, parameters: Record<string, string>): string {
  const challenge = createHash('sha256').update(randomBytes(32).toString('base64url')).digest('base64url');
  const query = new URLSearchParams({
    response_type: 'code',
    state: 'some-state',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...parameters,
  });
  return `${endpoint}?${query.toString()}`;
}

describe('Chromium', () => {
  it('signs in at the issuer, and as somebody else with prompt=login', async () => {
    const { issuer, clientId } = sandbox.issuer;
    const redirect = `${publicUrl}/sign-in/return`;
    const parameters = { client_id: clientId, redirect_uri: redirect, scope: 'openid' };
    const page = await context.newPage();
    const trouble: string[] = [];
    page.on('console', (message) => message.type() === 'error' && trouble.push(message.text()));
    await page.goto(authorizationUrl(`${issuer}/auth`, parameters));
    await page.getByRole('button', { name: 'Alice' }).click();
    await page.waitForURL(`${redirect}?*`);
    expect(new URL(page.url()).searchParams.get('code')).toBeTruthy();
    await page.goto(authorizationUrl(`${issuer}/auth`, { ...parameters, prompt: 'login' }));
    await page.getByRole('button', { name: 'Bob' }).click();
    await page.waitForURL(`${redirect}?*`);
    expect(new URL(page.url()).searchParams.get('iss')).toBe(issuer);
    expect(trouble).toEqual([]);
    await page.close();
  });

  it('signs in at Paperboat, consents, and comes back with a code', async () => {
    const { authorizationEndpoint, clientId, redirectUri, scopes } = sandbox.providerSettings;
    const page = await context.newPage();
    await page.goto(
      authorizationUrl(authorizationEndpoint, {
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: scopes.join(' '),
      }),
    );
    await page.getByRole('button', { name: 'Alice' }).click();
    await page.getByText('records:read').waitFor();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(`${redirectUri}?*`);
    expect(new URL(page.url()).searchParams.get('code')).toBeTruthy();
    await page.close();
  });
});
