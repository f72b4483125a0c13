/** The scripted person behaves like a browser between two sites. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenOnFirst } from '../../src/sandbox/loopback.ts';
import { openPerson } from '../../src/sandbox/person.ts';

type Page = (request: IncomingMessage, response: ServerResponse, body: string) => void;

interface Site {
  readonly origin: string;
  readonly pages: Map<string, Page>;
  /** Requests as they came in. */
  readonly seen: { path: string; method: string; headers: IncomingMessage['headers']; body: string }[];
  readonly server: Server;
}

async function openSite(host: string): Promise<Site> {
  const pages = new Map<string, Page>();
  const seen: Site['seen'] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const path = new URL(request.url ?? '/', 'http://site').pathname;
      seen.push({ path, method: request.method ?? '', headers: request.headers, body });
      const page = pages.get(path);
      if (page === undefined)
        response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${path}</title>`);
      else page(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return { origin: `http://${host}:${(server.address() as AddressInfo).port}`, pages, seen, server };
}

const page =
  (html: string, headers: Record<string, string | string[]> = {}): Page =>
  (_request, response) =>
    void response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(html);
const redirect =
  (status: number, location: string): Page =>
  (_request, response) =>
    void response.writeHead(status, { location }).end();

let home: Site;
let away: Site;

beforeEach(async () => {
  home = await openSite('127.0.0.1');
  away = await openSite('127.0.0.2');
});

afterEach(async () => {
  for (const { server } of [home, away]) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

describe('a scripted person', () => {
  it('goes with a page to another site and back, with Lax cookies and without Strict ones', async () => {
    home.pages.set(
      '/start',
      page(`<meta http-equiv="refresh" content="0;url=${away.origin}/hop" />`, {
        'set-cookie': ['lax=1; Path=/; SameSite=Lax; HttpOnly', 'strict=1; Path=/; SameSite=Strict'],
      }),
    );
    away.pages.set('/hop', redirect(302, `${home.origin}/back?code=x`));
    const person = openPerson();
    const last = await person.open(`${home.origin}/start`);
    expect(last.url).toBe(`${home.origin}/back?code=x`);
    expect(away.seen[0]?.headers.cookie).toBeUndefined();
    const back = home.seen.at(-1);
    expect(back?.headers.cookie).toBe('lax=1');
    expect(back?.headers['sec-fetch-site']).toBe('cross-site');
    expect(person.visits.map(({ status, location }) => [status, location])).toEqual([
      [200, undefined],
      [302, `${home.origin}/back?code=x`],
      [200, undefined],
    ]);
  });

  it('sends no Lax cookie with a form from another site, and says where the form came from', async () => {
    home.pages.set('/set', page('', { 'set-cookie': 'lax=1; Path=/; SameSite=Lax' }));
    away.pages.set(
      '/form',
      page(`<form method="post" action="${home.origin}/act"><button name="go" value="1"></form>`),
    );
    const person = openPerson();
    await person.open(`${home.origin}/set`);
    await person.open(`${away.origin}/form`);
    await person.press({ name: 'go' });
    const sent = home.seen.at(-1);
    expect(sent).toMatchObject({ method: 'POST', body: 'go=1' });
    expect(sent?.headers.cookie).toBeUndefined();
    expect(sent?.headers['sec-fetch-site']).toBe('cross-site');
    expect(sent?.headers.origin).toBe(away.origin);
    expect(sent?.headers.referer).toBe(`${away.origin}/`);
  });

  it('keeps quiet about a page that asks for no referrer', async () => {
    const form = '<form method="post" action="/act"><button name="go" value="1"></form>';
    home.pages.set('/form', page(form, { 'referrer-policy': 'no-referrer' }));
    const person = openPerson();
    await person.open(`${home.origin}/form?secret=1`);
    await person.press({});
    const sent = home.seen.at(-1);
    expect(sent?.headers.referer).toBeUndefined();
    expect(sent?.headers.origin).toBe('null');
    expect(sent?.headers['sec-fetch-site']).toBe('same-origin');
  });

  it('turns a POST into a GET at 303, and repeats it at 307', async () => {
    home.pages.set(
      '/form',
      page('<form method="post" action="/one"><input name="a" value="b"><button></form>'),
    );
    home.pages.set('/one', redirect(307, '/two'));
    home.pages.set('/two', redirect(303, '/three'));
    const person = openPerson();
    await person.open(`${home.origin}/form`);
    await person.press({}, { a: 'c' });
    expect(home.seen.map(({ method, path, body }) => `${method} ${path} ${body}`)).toEqual([
      'GET /form ',
      'POST /one a=c',
      'POST /two a=c',
      'GET /three ',
    ]);
  });

  it('presses one button, never one of several, never a missing one', async () => {
    home.pages.set('/two', page('<form><button name="a" value="1"><button name="a" value="2"></form>'));
    const person = openPerson();
    await person.open(`${home.origin}/two`);
    await expect(person.press({ name: 'a' })).rejects.toThrow('2 buttons on /two fit a=*; there must be one');
    await expect(person.press({ name: 'b' })).rejects.toThrow('0 buttons on /two fit b=*; there must be one');
  });

  it('presses what leads on, as the right person, and stops where nothing does', async () => {
    const post = (path: string, ...buttons: string[]) =>
      page(`<form method="post" action="${path}">${buttons.join('')}</form>`);
    const button = (name: string, value: string) => `<button name="${name}" value="${value}"></button>`;
    home.pages.set('/link', post('/a', button('action', 'decline'), button('action', 'continue')));
    home.pages.set('/a', post('/b', button('person', 'alice'), button('person', 'bob')));
    home.pages.set('/b', post('/c', button('action', 'deny'), button('action', 'allow')));
    home.pages.set('/c', post('/d', button('action', 'retry'), button('action', 'disconnect')));
    const last = await openPerson().signInEverywhere(`${home.origin}/link`, { as: 'bob' });
    expect(new URL(last.url).pathname).toBe('/c');
    expect(home.seen.map(({ body }) => body)).toEqual(['', 'action=continue', 'person=bob', 'action=allow']);
  });

  it('gives up on pages and redirects that go round in circles', async () => {
    home.pages.set('/loop', redirect(302, '/loop'));
    home.pages.set('/again', page('<form method="post"><button name="action" value="continue"></form>'));
    await expect(openPerson().open(`${home.origin}/loop`)).rejects.toThrow('more than 20 redirects');
    await expect(openPerson().signInEverywhere(`${home.origin}/again`, { as: 'alice' })).rejects.toThrow(
      'still not done after 15 buttons',
    );
  });

  it('goes nowhere but loopback, not even when it is led there', async () => {
    home.pages.set('/out', redirect(302, 'http://192.0.2.1/'));
    await expect(openPerson().open('https://example.com/')).rejects.toThrow('works on loopback only');
    await expect(openPerson().open(`${home.origin}/out`)).rejects.toThrow('works on loopback only');
  });
});

describe('an address for a site', () => {
  it('is the first one that this machine has', async () => {
    const free = await listenOnFirst(['127.0.0.5', '127.0.0.1'], 0);
    expect(new URL(free.origin).hostname).toBe('127.0.0.5');
    await free.close();
  });

  it('is never one of another machine', async () => {
    await expect(listenOnFirst(['0.0.0.0'], 0)).rejects.toThrow(
      'address: the sandbox works on loopback only',
    );
  });

  it('does not change because a port is taken: that is an error', async () => {
    const { port } = new URL(home.origin);
    await expect(listenOnFirst(['127.0.0.1', '127.0.0.5'], Number(port))).rejects.toMatchObject({
      code: 'EADDRINUSE',
    });
  });
});
