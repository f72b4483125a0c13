/**
 * A scripted person with a browser of their own: real HTTP, cookies by the rules, redirects and pages that
 * move on followed across sites, forms pressed by their buttons. It runs no script, so whatever it can
 * finish works without. It goes nowhere but loopback.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { cookieJar, type CookieJar } from './cookie-jar.ts';
import { readPage, type Button, type Form, type Page } from './html-page.ts';
import { requireLoopback } from './loopback.ts';

/** One answer that the browser got, redirects included. */
export interface Visit {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly status: number;
  /** Where a redirect led; undefined for a page. */
  readonly location: string | undefined;
  readonly html: string;
}

/** Names a button on a page: what is left out does not matter. */
export interface ButtonMatch {
  readonly name?: string;
  readonly value?: string;
  /** Path of the form's action. */
  readonly action?: RegExp;
}

/** Who somebody is at the sites that ask. */
export interface Identity {
  /** Account at the issuer, such as `alice`. */
  readonly as: string;
  /** Account at the SaaS. Default `<as>@paperboat`. */
  readonly account?: string;
}

export interface Person {
  /** Every answer, in order. */
  readonly visits: readonly Visit[];
  readonly cookies: CookieJar;
  /** The page that is open. @throws Error when none is. */
  readonly page: Page;
  /** Opens an address as if it were typed in. */
  open(url: string): Promise<Page>;
  /**
   * Presses a button of the open page.
   *
   * @param fields values for fields of the form; others keep what the page says
   * @throws Error when no button, or more than one, is meant.
   */
  press(match: ButtonMatch, fields?: Readonly<Record<string, string>>): Promise<Page>;
  /**
   * Opens a link and presses what leads on, until a page has nothing of the kind: signs in at Keyturn and
   * its issuer, agrees to go on, signs in at the SaaS and consents. Buttons are known by name and value:
   * `person` with one of the person's accounts, `action` with `sign-in`, `continue`, `approve` or `allow`.
   *
   * @returns the page at the end, whatever it says
   * @throws Error when the pages go round in circles.
   */
  signInEverywhere(link: string, identity: Identity): Promise<Page>;
}

const MOST_HOPS = 20;
const MOST_PRESSES = 15;
const MOST_BYTES = 1_048_576;
const TIMEOUT_MS = 15_000;
/** Values of `action` that lead on, the first on a page is pressed. */
const LEADS_ON = ['sign-in', 'continue', 'approve', 'allow'] as const;

interface Navigation {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly body?: string;
  /** The page that it starts from; undefined for a typed address. */
  readonly from: Opened | undefined;
}

interface Opened {
  readonly page: Page;
  readonly noReferrer: boolean;
}

/** A person with a fresh browser. */
export function openPerson(): Person {
  const cookies = cookieJar(() => Date.now());
  const visits: Visit[] = [];
  let opened: Opened | undefined;

  async function go(start: Navigation): Promise<Page> {
    let at = start;
    // A redirect through another site stays cross-site, wherever it ends.
    let sameSite = true;
    let sameOrigin = true;
    for (let hop = 0; hop < MOST_HOPS; hop += 1) {
      const from = at.from === undefined ? at.url : new URL(at.from.page.url);
      sameSite &&= siteOf(from) === siteOf(at.url);
      sameOrigin &&= from.origin === at.url.origin;
      const fetchSite =
        at.from === undefined ? 'none' : sameOrigin ? 'same-origin' : sameSite ? 'same-site' : 'cross-site';
      const cookie = cookies.headerFor({
        url: at.url,
        isSameSite: sameSite,
        isSafeNavigation: at.method === 'GET',
      });
      const { response, html } = await exchange(at, { fetchSite, cookie });
      cookies.store(at.url, response.headers['set-cookie'] ?? []);
      const status = response.statusCode ?? 0;
      const location = status >= 300 && status < 400 ? response.headers.location : undefined;
      visits.push({ method: at.method, url: at.url.href, status, location, html });

      if (location !== undefined) {
        const keeps = status === 307 || status === 308;
        at = keeps
          ? { ...at, url: new URL(location, at.url) }
          : { method: 'GET', url: new URL(location, at.url), from: at.from };
        continue;
      }
      const page = readPage(at.url.href, status, html);
      opened = { page, noReferrer: response.headers['referrer-policy'] === 'no-referrer' };
      if (page.movesTo === undefined) return page;
      at = { method: 'GET', url: new URL(page.movesTo), from: opened };
      sameSite = true;
      sameOrigin = true;
    }
    throw new Error(`more than ${MOST_HOPS} redirects, the last to ${at.url.origin}${at.url.pathname}`);
  }

  function current(): Opened {
    if (opened === undefined) throw new Error('no page is open');
    return opened;
  }

  async function press(match: ButtonMatch, fields: Readonly<Record<string, string>> = {}): Promise<Page> {
    const from = current();
    const found = from.page.forms.flatMap((form) =>
      form.buttons.filter((button) => fits(form, button, match)).map((button) => ({ form, button })),
    );
    const [first, second] = found;
    if (first === undefined || second !== undefined) {
      const { pathname } = new URL(from.page.url);
      throw new Error(`${found.length} buttons on ${pathname} fit ${describe(match)}; there must be one`);
    }
    const { form, button } = first;
    const sent = form.fields.filter(([name]) => !(name in fields));
    const entries = [...sent, ...Object.entries(fields)].map(([name, value]): [string, string] => [
      name,
      value,
    ]);
    if (button.name !== '') entries.push([button.name, button.value]);
    const body = new URLSearchParams(entries).toString();
    const url = new URL(form.action);
    if (form.method === 'POST') return go({ method: 'POST', url, body, from });
    url.search = body;
    return go({ method: 'GET', url, from });
  }

  async function open(url: string): Promise<Page> {
    return go({ method: 'GET', url: new URL(url), from: undefined });
  }

  return {
    visits,
    cookies,
    get page() {
      return current().page;
    },
    open,
    press,
    async signInEverywhere(link, { as, account = `${as}@paperboat` }) {
      let page = await open(link);
      for (let presses = 0; presses < MOST_PRESSES; presses += 1) {
        const buttons = page.forms.flatMap((form) => form.buttons);
        const next =
          buttons.find(({ name, value }) => name === 'person' && (value === as || value === account)) ??
          LEADS_ON.map((value) =>
            buttons.find((button) => button.name === 'action' && button.value === value),
          ).find((button) => button !== undefined);
        if (next === undefined) return page;
        page = await press({ name: next.name, value: next.value });
      }
      throw new Error(`still not done after ${MOST_PRESSES} buttons, at "${page.title}"`);
    },
  };
}

function fits(form: Form, button: Button, { name, value, action }: ButtonMatch): boolean {
  return (
    (name === undefined || name === button.name) &&
    (value === undefined || value === button.value) &&
    (action === undefined || action.test(new URL(form.action).pathname))
  );
}

function describe({ name = '*', value = '*', action }: ButtonMatch): string {
  return `${name}=${value}${action === undefined ? '' : ` of ${String(action)}`}`;
}

function siteOf(url: URL): string {
  return `${url.protocol}//${url.hostname}`;
}

/** One request and its whole answer. */
async function exchange(
  { method, url, body, from }: Navigation,
  { fetchSite, cookie }: { readonly fetchSite: string; readonly cookie: string | undefined },
): Promise<{ response: IncomingMessage; html: string }> {
  requireLoopback('url', url.href);
  const headers: Record<string, string> = {
    accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
    'sec-fetch-dest': 'document',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-site': fetchSite,
  };
  if (cookie !== undefined) headers['cookie'] = cookie;
  if (from !== undefined) {
    const page = new URL(from.page.url);
    // The default policy: the whole address to its own origin, the origin alone to others.
    const referrer =
      page.origin === url.origin ? `${page.origin}${page.pathname}${page.search}` : `${page.origin}/`;
    if (!from.noReferrer) headers['referer'] = referrer;
    if (method === 'POST') headers['origin'] = from.noReferrer ? 'null' : page.origin;
  }
  if (body !== undefined) headers['content-type'] = 'application/x-www-form-urlencoded';

  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const options = { method, headers, agent: false, timeout: TIMEOUT_MS } as const;
    const request = send(url, options, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) request.destroy(new Error(`the answer is larger than ${MOST_BYTES} bytes`));
        chunks.push(chunk);
      });
      response.on('end', () => resolve({ response, html: Buffer.concat(chunks).toString('utf8') }));
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    request.on('error', reject);
    request.end(body);
  });
}
