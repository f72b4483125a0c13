import { AxeBuilder } from '@axe-core/playwright';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdir } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { securityHeaders } from '../../callbacks/security-headers.ts';
import { openChromium } from '../support/chromium.ts';
import { samplePages, type SamplePage } from '../support/page-models.ts';

const HOSTILE =
  '"><img src=x onerror=alert(1)><script>alert(1)</script>\u202Egnp.exe\u0000' +
  'العربية ' +
  'Ω'.repeat(20_000);

const pages = samplePages();
const hostilePages = samplePages(() => HOSTILE);
const screenshots = new URL('./screenshots/', import.meta.url).pathname;

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: URLSearchParams;
}
const received: Received[] = [];

const server = createServer((request, response) => {
  const url = request.url ?? '/';
  let body = '';
  request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    received.push({
      method: request.method ?? '',
      url,
      headers: request.headers,
      body: new URLSearchParams(body),
    });
    const set = url.startsWith('/hostile/') ? hostilePages : pages;
    const found = set.find(({ name }) => url.endsWith(`/${name}`));
    response.writeHead(found === undefined ? 204 : 200, securityHeaders(false));
    response.end(found?.html);
  });
});

let browser: Browser;
let origin: string;

beforeAll(async () => {
  await mkdir(screenshots, { recursive: true });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await openChromium();
});

afterAll(async () => {
  await browser?.close();
  server.close();
});

/** Opens a page of the server; collects what the browser complains about. No other origin answers. */
async function open(
  path: string,
  look: { width: number; dark?: boolean; forced?: boolean; still?: boolean },
): Promise<{ page: Page; complaints: string[]; close: () => Promise<void> }> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: 800 },
    colorScheme: look.dark === true ? 'dark' : 'light',
    forcedColors: look.forced === true ? 'active' : 'none',
    reducedMotion: look.still === true ? 'reduce' : 'no-preference',
  });
  const complaints: string[] = [];
  // A 204 leaves the browser on the page that navigates away.
  await context.route(
    (url) => url.origin !== origin && url.protocol !== 'data:',
    (route) => route.fulfill({ status: 204 }),
  );
  const page = await context.newPage();
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(origin + path, { waitUntil: 'load' });
  return { page, complaints, close: () => context.close() };
}

const LOOKS = [
  { name: 'phone-light', width: 320, dark: false },
  { name: 'phone-dark', width: 320, dark: true },
  { name: 'desk-light', width: 1280, dark: false },
  { name: 'desk-dark', width: 1280, dark: true },
];

async function inspect({ name }: SamplePage, look: (typeof LOOKS)[number]) {
  const { page, complaints, close } = await open(`/page/${name}`, look);
  // Legacy mode runs in the page itself; the other one exists for frames, and there are none.
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  await page.screenshot({ path: `${screenshots}${name}.${look.name}.png`, fullPage: true });
  await close();
  return {
    page: name,
    violations: violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
    complaints,
    overflow,
  };
}

describe.each(LOOKS)('at $width px, dark: $dark', (look) => {
  test.each(pages)('axe finds nothing on $name, no policy is violated, nothing overflows', async (sample) => {
    expect(await inspect(sample, look)).toEqual({
      page: sample.name,
      violations: [],
      complaints: [],
      overflow: 0,
    });
  });
});

describe('hostile names', () => {
  test.each(pages)('add no element to $name and push nothing off a phone', async ({ name }) => {
    const shape = `[...document.querySelectorAll('*')]
      .map((e) => e.tagName + ' ' + e.getAttributeNames().join(' '))`;
    const benign = await open(`/page/${name}`, { width: 320 });
    const expected = await benign.page.evaluate(shape);
    await benign.close();
    const { page, complaints, close } = await open(`/hostile/${name}`, { width: 320 });
    expect(await page.evaluate(shape)).toEqual(expected);
    expect(complaints).toEqual([]);
    expect(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    ).toBe(0);
    await close();
  });
});

describe('in a real browser', () => {
  test('Continue posts action and CSRF, with Sec-Fetch-Site same-origin and a null Origin', async () => {
    const { page, close } = await open('/page/connect-first', { width: 1280 });
    received.length = 0;
    await Promise.all([
      page.waitForResponse((response) => response.request().method() === 'POST'),
      page.getByRole('button', { name: 'Continue to GitHub' }).click(),
    ]);
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ method: 'POST', url: '/connect/h4ndle' });
    expect(Object.fromEntries(received[0]?.body ?? [])).toEqual({ action: 'continue', csrf: 'csrf-value-1' });
    expect(received[0]?.headers['sec-fetch-site']).toBe('same-origin');
    expect(received[0]?.headers.origin).toBe('null');
    expect(received[0]?.headers.referer).toBeUndefined();
    await close();
  });

  test('the chosen account is sent with Continue', async () => {
    const { page, close } = await open('/page/connect-choose', { width: 320 });
    received.length = 0;
    await page.getByLabel('Another account').check();
    await Promise.all([
      page.waitForResponse((response) => response.request().method() === 'POST'),
      page.getByRole('button', { name: 'Continue' }).click(),
    ]);
    expect(received[0]?.body.get('account')).toBe('other');
    await close();
  });

  test('the keyboard reaches the controls in the order of the page, each with a visible focus', async () => {
    const { page, close } = await open('/page/connect-first', { width: 1280 });
    const reached: unknown[] = [];
    for (let press = 0; press < 5; press += 1) {
      await page.keyboard.press('Tab');
      reached.push(
        await page.evaluate(
          `[document.activeElement.textContent.trim(),
            getComputedStyle(document.activeElement).outlineStyle]`,
        ),
      );
    }
    expect(reached).toEqual([
      ['Northwind Ingest', 'solid'],
      ['Not you?', 'solid'],
      ['Continue to GitHub', 'solid'],
      ['Not now', 'solid'],
      ['My connections', 'solid'],
    ]);
    await close();
  });

  test('the leaving page goes on to the provider by itself, without a referrer', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const arrived = new Promise<{ url: string; referer: string | undefined }>((resolve) => {
      void context.route('https://github.com/**', async (route) => {
        resolve({ url: route.request().url(), referer: route.request().headers()['referer'] });
        await route.fulfill({ contentType: 'text/html', body: 'the provider' });
      });
    });
    await page.goto(`${origin}/page/leaving`);
    const { url, referer } = await arrived;
    expect(new URL(url).searchParams.get('state')).toBe('s1');
    expect(referer).toBeUndefined();
    await context.close();
  });

  test('after an error the first wrong field has the focus and names its error', async () => {
    const { page, close } = await open('/page/credential-with-errors', { width: 320 });
    const field = page.getByLabel('API key');
    expect(await page.evaluate('document.activeElement.id')).toBe('field-key');
    expect(await field.getAttribute('aria-describedby')).toBe('field-key-error field-key-hint');
    expect(await page.locator('#field-key-error').textContent()).toBe('Freshdesk does not know this key.');
    expect(await field.inputValue()).toBe('');
    await close();
  });

  test('a script that reached the page anyway would not run', async () => {
    const { page, complaints, close } = await open('/page/home', { width: 320 });
    await page.evaluate(
      `document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="document.title = 1">')`,
    );
    await expect.poll(() => complaints.length).toBeGreaterThan(0);
    expect(complaints.join()).toContain('Content Security Policy');
    expect(await page.title()).toBe('Home – Northwind Ingest');
    await close();
  });

  test('forced colours and reduced motion leave every button with a border and nothing moving', async () => {
    const { page, close } = await open('/page/connections', { width: 1280, forced: true, still: true });
    const buttons = (await page.evaluate(
      `[...document.querySelectorAll('.button')].map((b) => getComputedStyle(b).borderTopColor)`,
    )) as string[];
    expect(buttons.length).toBeGreaterThan(0);
    expect(new Set(buttons).size).toBe(1);
    expect(await page.evaluate('document.getAnimations().length')).toBe(0);
    await page.screenshot({ path: `${screenshots}connections.forced.png`, fullPage: true });
    await close();
  });
});
