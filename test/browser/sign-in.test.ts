/** A person with a real browser, over three sites and with the headers of production. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdir } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { defineJob, text, type JobDefinition } from '../../src/engine/define.ts';
import type { TaskSnapshot } from '../../src/engine/tasks.ts';
import { openWorld, type World } from '../../src/world.ts';
import { openChromium } from '../support/chromium.ts';

const screenshots = new URL('./screenshots/', import.meta.url).pathname;
const SOON_MS = 6_000;

let browser: Browser;
let world: World;
let elsewhere: Server;
let elsewhereOrigin: string;
/** What the server of another site answers. */
let elsewherePage = '';
let contexts: BrowserContext[] = [];
/** What a policy has blocked, in any page of any context. */
let blocked: string[] = [];

function fetchRecords(name: string, waitMs?: number): JobDefinition {
  return defineJob({
    name,
    title: 'Fetch records',
    description: 'Reads one page of records.',
    requires: { paperboat: { scopes: ['records:read'] } },
    ...(waitMs === undefined ? {} : { waitMs }),
    run: async (job) => {
      await job
        .api('paperboat', { scopes: ['records:read'] })
        .json(world.sandbox.providerSettings.recordsUrl);
      return text('fetched');
    },
  });
}

const jobs = { fetch: fetchRecords('fetch'), fetchSoon: fetchRecords('fetch_soon', SOON_MS) };

beforeAll(async () => {
  await mkdir(screenshots, { recursive: true });
  browser = await openChromium();
  world = await openWorld({ tools: Object.values(jobs), logStream: { write: () => undefined } });
  elsewhere = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(elsewherePage);
  });
  await new Promise<void>((listening) => elsewhere.listen(0, '127.0.0.9', listening));
  elsewhereOrigin = `http://127.0.0.9:${(elsewhere.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await browser.close();
  await world.close();
  elsewhere.closeAllConnections();
  await new Promise((closed) => elsewhere.close(closed));
});

beforeEach(async () => {
  blocked = [];
  const { ledger, engine } = world.keyturn;
  for (const as of ['alice', 'bob']) {
    const { owner } = caller(as);
    for (const { connection } of await ledger.listConnections(owner)) {
      await engine.offBoarding.disconnect(owner, connection.id);
    }
  }
});

afterEach(async () => {
  await Promise.all(contexts.map((context) => context.close()));
  contexts = [];
});

function caller(subject: string) {
  const owner = ownerOf({ issuer: world.sandbox.issuer.issuer, subject });
  return { owner, clientId: 'test-client', scopes: [] };
}

async function until(as: string, taskId: string, status: string): Promise<TaskSnapshot> {
  const signal = AbortSignal.timeout(20_000);
  for (let rev = -1; ;) {
    const task = await world.keyturn.engine.tasks.waitForChange(caller(as), taskId, {
      beyondRev: rev,
      timeoutMs: 20_000,
      signal,
    });
    if (task === undefined) throw new Error('no such task');
    if (task.status === status || signal.aborted) return task;
    rev = task.rev;
  }
}

async function stopped(as: string, job = jobs.fetch): Promise<{ taskId: string; link: string }> {
  const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };
  const { task } = await world.keyturn.engine.tasks.start(caller(as), { job, args: {}, declared });
  const waiting = await until(as, task.taskId, 'input_required');
  return { taskId: task.taskId, link: waiting.inputs[0]?.url ?? '' };
}

/** Somebody with a browser of their own. */
async function person(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(15_000);
  context.on('console', (message) => {
    if (/Content Security Policy|Refused to|Permissions-Policy|blocked/i.test(message.text())) {
      blocked.push(message.text());
    }
  });
  contexts.push(context);
  return context;
}

async function press(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('button', { name }).click();
}

/** From a link to the page with *Continue*. */
async function signIn(page: Page, link: string, name = 'Alice'): Promise<void> {
  await page.goto(link);
  await press(page, /^Sign in to/);
  await press(page, name);
  await page.waitForURL(link);
}

/** From *Continue* to the consent of the provider. */
async function toConsent(page: Page, name = 'Alice'): Promise<void> {
  await press(page, /^Continue to/);
  await page.waitForURL((url) => url.origin === world.sandbox.saas.origin);
  await press(page, name);
  await page.getByRole('button', { name: 'Allow' }).waitFor();
}

async function heading(page: Page): Promise<string> {
  return (await page.getByRole('heading', { level: 1 }).textContent()) ?? '';
}

async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${screenshots}sign-in.${name}.png`, fullPage: true });
}

test('a link leads over three sites to a page that says done; reload and back change nothing', async () => {
  const { taskId, link } = await stopped('alice');
  const page = await (await person()).newPage();
  await page.goto(link);
  await picture(page, '1-who-are-you');
  await signIn(page, link);
  await picture(page, '2-connect');
  await toConsent(page);
  await picture(page, '3-consent');
  await press(page, 'Allow');
  await page.waitForURL(/\/outcome\/[\w-]+$/);
  expect(await heading(page)).toContain('Done');
  await picture(page, '4-done');
  expect((await until('alice', taskId, 'completed')).status).toBe('completed');

  await page.reload();
  expect(await heading(page)).toContain('Done');
  const outcome = page.url();
  await page.goBack();
  await pause(300);
  await page.goForward();
  await page.goto(outcome);
  expect(await heading(page)).toContain('Done');
  await page.goto(link);
  expect(await heading(page)).toContain('already done');
  await picture(page, '5-link-again');
  const names = (await page.context().cookies(world.publicUrl)).map(({ name }) => name);
  expect(names).toEqual(['keyturn_session']);
  expect(blocked).toEqual([]);
});

test('the whole way works without script', async () => {
  const { taskId, link } = await stopped('alice');
  const page = await (await person({ javaScriptEnabled: false })).newPage();
  await signIn(page, link);
  await toConsent(page);
  await press(page, 'Allow');
  await page.waitForURL(/\/outcome\//);
  expect(await heading(page)).toContain('Done');
  expect((await until('alice', taskId, 'completed')).status).toBe('completed');
});

test('two tabs are finished in reverse order', async () => {
  const one = await stopped('alice');
  const two = await stopped('alice');
  const context = await person();
  const first = await context.newPage();
  await signIn(first, one.link);
  const second = await context.newPage();
  await second.goto(two.link);
  await toConsent(first);
  await press(second, /^Continue to/);
  await second
    .getByRole('button', { name: /Allow|Alice/ })
    .first()
    .waitFor();
  if (await second.getByRole('button', { name: 'Alice' }).isVisible()) await press(second, 'Alice');
  await press(second, 'Allow');
  await second.waitForURL(/\/outcome\//);
  expect(await heading(second)).toContain('Done');
  await press(first, 'Allow');
  await first.waitForURL(/\/outcome\//);
  expect(await heading(first)).toContain('Done');
  for (const { taskId } of [one, two]) {
    expect((await until('alice', taskId, 'completed')).status).toBe('completed');
  }
  expect(blocked).toEqual([]);
});

test('back from the provider, Continue can be pressed again', async () => {
  const { taskId, link } = await stopped('alice');
  const page = await (await person()).newPage();
  await signIn(page, link);
  await press(page, /^Continue to/);
  await page.waitForURL((url) => url.origin === world.sandbox.saas.origin);
  await page.goto(link);
  await toConsent(page);
  await press(page, 'Allow');
  await page.waitForURL(/\/outcome\//);
  expect(await heading(page)).toContain('Done');
  expect((await until('alice', taskId, 'completed')).status).toBe('completed');
  // The history still holds the provider's page; whatever it leads to, nothing breaks.
  for (let steps = 0; steps < 3; steps += 1) {
    await page.goBack();
    await pause(200);
  }
  await page.goto(link);
  expect(await heading(page)).toContain('already done');
});

test('a denial at the provider ends the task, and the page says what to do', async () => {
  const { taskId, link } = await stopped('alice');
  const page = await (await person()).newPage();
  await signIn(page, link);
  await toConsent(page);
  await press(page, 'Deny');
  await page.waitForURL(/\/outcome\//);
  expect(await heading(page)).toContain('did not give access');
  await picture(page, '6-denied');
  expect((await until('alice', taskId, 'failed')).outcome).toMatchObject({ reason: 'access_denied' });
  await page.reload();
  expect(await heading(page)).toContain('did not give access');
});

test('who comes back after the deadline is told that it is too late, and so is who opens the link', async () => {
  const { taskId, link } = await stopped('alice', jobs.fetchSoon);
  const page = await (await person()).newPage();
  await signIn(page, link);
  await toConsent(page);
  await until('alice', taskId, 'failed');
  await press(page, 'Allow');
  await page.waitForURL(/\/outcome\//);
  expect(await heading(page)).toContain('too old');
  await picture(page, '7-too-late');
  await page.goto(link);
  expect(await heading(page)).toContain('too old');
  const found = await world.keyturn.ledger.listConnections(caller('alice').owner);
  expect(found.filter(({ connection }) => connection.status === 'active')).toEqual([]);
});

test('a link for somebody else is refused, and the way to one’s own sign-in is offered', async () => {
  const { link } = await stopped('alice');
  const page = await (await person()).newPage();
  await page.goto(link);
  await press(page, /^Sign in to/);
  await press(page, 'Bob');
  await page.waitForURL(link);
  expect(await page.textContent('body')).not.toMatch(/alice|paperboat/i);
  await picture(page, '8-somebody-else');
  await press(page, 'Sign in as someone else');
  await press(page, 'Alice');
  await page.waitForURL(link);
  expect(await heading(page)).toContain('Connect your Paperboat account');
  expect(blocked).toEqual([]);
});

test('another site can neither frame the page nor press its button', async () => {
  const { taskId, link } = await stopped('alice');
  const page = await (await person()).newPage();
  await signIn(page, link);
  const before = await page.content();
  const csrf = /name="csrf" value="([^"]+)"/.exec(before)?.[1] ?? '';
  expect(csrf).not.toBe('');
  elsewherePage = `<!doctype html><title>other</title><iframe src="${link}"></iframe>`;
  await page.goto(elsewhereOrigin);
  const framed = page.frames().find((frame) => frame !== page.mainFrame());
  expect(await framed?.content()).not.toContain('Continue to');
  expect(blocked.join('\n')).toMatch(/frame-ancestors|X-Frame-Options/i);
  // Even one who knew the field.
  elsewherePage = `<!doctype html><title>other</title><form method="post" action="${link}">
    <input name="csrf" value="${csrf}"><input name="action" value="continue"><button>go</button></form>`;
  await page.goto(elsewhereOrigin);
  await press(page, 'go');
  await page.waitForURL(link);
  expect(await heading(page)).toContain('did not count');
  expect((await until('alice', taskId, 'input_required')).status).toBe('input_required');
});
