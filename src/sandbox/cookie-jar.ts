/**
 * The cookies of one browser (RFC 6265 with the SameSite and prefix rules of its revision), as far as they
 * decide whether a sign-in works. A site is scheme and host, which is exact for addresses and for
 * `localhost`; ports do not tell cookies apart. Stricter than a browser in one point: `Secure` cookies are
 * never taken or sent over plain http, loopback or not, so that nothing comes to rest on that leniency.
 */

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly host: string;
  /** Host-only, unless the cookie named a domain. */
  readonly hostOnly: boolean;
  readonly path: string;
  readonly secure: boolean;
  readonly httpOnly: boolean;
  readonly sameSite: 'strict' | 'lax' | 'none';
  /** Infinity for a session cookie. */
  readonly untilMs: number;
  /** Order of creation: of equal paths, the older goes first. */
  readonly order: number;
}

/** How a request came about. */
export interface CookieRequest {
  readonly url: URL;
  /** Everything on the way to this request is of its own site; a typed address is. */
  readonly isSameSite: boolean;
  /** A navigation by GET: what `Lax` lets through from another site. */
  readonly isSafeNavigation: boolean;
}

export interface CookieJar {
  /** Takes the `Set-Cookie` lines of a response. A line against the rules is dropped, as a browser does. */
  store(url: URL, lines: readonly string[]): void;
  /** The `Cookie` header of a request; undefined when there is none to send. */
  headerFor(request: CookieRequest): string | undefined;
  /** Cookies that are held, by host, name and attributes, without their values. */
  list(): readonly Omit<Cookie, 'value' | 'order'>[];
}

/** An empty jar. */
export function cookieJar(nowMs: () => number): CookieJar {
  const cookies = new Map<string, Cookie>();
  let order = 0;

  function live(): Cookie[] {
    for (const [key, { untilMs }] of cookies) if (untilMs <= nowMs()) cookies.delete(key);
    return [...cookies.values()];
  }

  return {
    store(url, lines) {
      for (const line of lines) {
        const cookie = read(url, line, nowMs(), (order += 1));
        if (cookie === undefined) continue;
        const key = `${cookie.host} ${cookie.path} ${cookie.name}`;
        const earlier = cookies.get(key);
        cookies.set(key, earlier === undefined ? cookie : { ...cookie, order: earlier.order });
      }
    },
    headerFor({ url, isSameSite, isSafeNavigation }) {
      const sent = live()
        .filter((cookie) => matchesHost(url.hostname, cookie) && matchesPath(url.pathname, cookie.path))
        .filter(({ secure }) => !secure || url.protocol === 'https:')
        .filter(
          ({ sameSite }) => isSameSite || sameSite === 'none' || (sameSite === 'lax' && isSafeNavigation),
        )
        .toSorted((a, b) => b.path.length - a.path.length || a.order - b.order);
      return sent.length === 0 ? undefined : sent.map(({ name, value }) => `${name}=${value}`).join('; ');
    },
    list: () => live().map(({ value: _value, order: _order, ...shape }) => shape),
  };
}

function read(url: URL, line: string, nowMs: number, order: number): Cookie | undefined {
  const [pair = '', ...rest] = line.split(';');
  const at = pair.indexOf('=');
  if (at < 1) return undefined;
  const name = pair.slice(0, at).trim();
  const attributes = new Map(
    rest.map((part): [string, string] => {
      const [key = '', ...value] = part.split('=');
      return [key.trim().toLowerCase(), value.join('=').trim()];
    }),
  );

  const domain = attributes.get('domain')?.replace(/^\./, '').toLowerCase() ?? '';
  // A domain is a name that this host ends in; an address ends in nothing but itself.
  if (domain !== '' && domain !== url.hostname) {
    if (/^[\d.]+$|^\[/.test(url.hostname) || !url.hostname.endsWith(`.${domain}`)) return undefined;
  }
  const givenPath = attributes.get('path') ?? '';
  const path = givenPath.startsWith('/') ? givenPath : defaultPath(url.pathname);
  const secure = attributes.has('secure');
  const sameSite = sameSiteOf(attributes.get('samesite'));
  if (secure && url.protocol !== 'https:') return undefined;
  if (sameSite === 'none' && !secure) return undefined;
  if (name.startsWith('__Secure-') && !secure) return undefined;
  if (name.startsWith('__Host-') && (!secure || domain !== '' || givenPath !== '/')) return undefined;
  return {
    name,
    value: pair.slice(at + 1).trim(),
    host: domain === '' ? url.hostname : domain,
    hostOnly: domain === '',
    path,
    secure,
    httpOnly: attributes.has('httponly'),
    sameSite,
    untilMs: untilOf(attributes, nowMs),
    order,
  };
}

function sameSiteOf(value: string | undefined): Cookie['sameSite'] {
  const word = value?.toLowerCase();
  return word === 'strict' || word === 'none' ? word : 'lax';
}

function untilOf(attributes: ReadonlyMap<string, string>, nowMs: number): number {
  const maxAge = attributes.get('max-age');
  if (maxAge !== undefined && /^-?\d+$/.test(maxAge)) return nowMs + Number(maxAge) * 1000;
  const expires = Date.parse(attributes.get('expires') ?? '');
  return Number.isNaN(expires) ? Infinity : expires;
}

function matchesHost(host: string, cookie: Cookie): boolean {
  return host === cookie.host || (!cookie.hostOnly && host.endsWith(`.${cookie.host}`));
}

function matchesPath(path: string, wanted: string): boolean {
  return (
    path === wanted || (path.startsWith(wanted) && (wanted.endsWith('/') || path[wanted.length] === '/'))
  );
}

function defaultPath(path: string): string {
  const end = path.lastIndexOf('/');
  return end <= 0 ? '/' : path.slice(0, end);
}
