/**
 * HTML by tagged template: every value is escaped for the place where it stands, and a place where no value
 * can be made safe is refused.
 *
 * The static parts of a template are read once. Values may stand in text, inside a double-quoted attribute,
 * or, as `Attributes`, between attributes. URL attributes take only a `SafeUrl`. Event handlers, `style`,
 * `srcdoc`, script, style and comment content take no value at all. A mistake in a template is a bug and
 * throws at the first rendering.
 */

const text = Symbol('text');

/** Markup that is safe to place in text: made by `html`, or declared safe with `trustedHtml`. */
export class Html {
  readonly [text]: string;
  constructor(from: typeof text, markup: string) {
    if (from !== text) throw new TypeError('Html is made by html`…` or trustedHtml().');
    this[text] = markup;
  }
  toString(): string {
    return this[text];
  }
}

/** A URL that was checked: a path of this server, or an absolute web address. */
export class SafeUrl {
  readonly [text]: string;
  constructor(from: typeof text, url: string) {
    if (from !== text) throw new TypeError('SafeUrl is made by localPath() or webUrl().');
    this[text] = url;
  }
}

/** Attributes that are present or absent as the page needs. */
export class Attributes {
  readonly [text]: string;
  constructor(from: typeof text, markup: string) {
    if (from !== text) throw new TypeError('Attributes are made by attributes().');
    this[text] = markup;
  }
}

/** What a template takes. `undefined` renders as nothing, so that an optional part needs no second branch. */
export type Value = string | number | Html | SafeUrl | Attributes | undefined | readonly (string | Html)[];

/**
 * Declares a text to be markup already. For constants of this folder only: never for anything that came from
 * outside.
 */
export function trustedHtml(markup: string): Html {
  return new Html(text, markup);
}

/**
 * A path on this server. Refuses what a browser would take for another origin (`//host`, `/\host`) or for a
 * path relative to the page, and control characters, which browsers drop before they parse.
 */
export function localPath(path: string): SafeUrl {
  if (!/^\/(?![/\\])[^\p{Cc}\s\\]*$/u.test(path))
    throw new TypeError('A local path must begin with a single slash.');
  return new SafeUrl(text, path);
}

/** An absolute `https:` URL, or `http:` on a loopback host (D14). Any other scheme throws a TypeError. */
export function webUrl(url: string): SafeUrl {
  const parsed = new URL(url);
  const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(parsed.hostname);
  if (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && loopback)) {
    throw new TypeError('A web address must be https, or http on a loopback host.');
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new TypeError('A web address must not carry a user name or a password.');
  }
  return new SafeUrl(text, parsed.href);
}

/** Attributes from a record: `true` is a bare attribute, `undefined` and `false` are left out. */
export function attributes(
  record: Readonly<Record<string, string | number | boolean | undefined>>,
): Attributes {
  let markup = '';
  for (const [name, value] of Object.entries(record)) {
    if (!/^[a-z][a-z-]*$/.test(name) || kindOf(name) !== 'plain') {
      throw new TypeError(`The attribute ${name} cannot be set from a record.`);
    }
    if (value === undefined || value === false) continue;
    markup += value === true ? ` ${name}` : ` ${name}="${escape(String(value))}"`;
  }
  return new Attributes(text, markup);
}

/**
 * Invisible characters that change how their neighbours are read: controls, bidirectional overrides,
 * zero-width fillers, tag characters. Kept: the joiners that scripts and emoji need, variation selectors, and
 * the two isolates with which `shown` wraps a name.
 */
const DECEPTIVE = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}]--[\t\n\u200C-\u200D\u2068\u2069\p{VS}]]/gv;

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

function escape(value: string): string {
  return value
    .toWellFormed()
    .replace(DECEPTIVE, '')
    .replace(/[&<>"'`]/g, (character) => ENTITIES[character] ?? '');
}

type Place =
  | { readonly kind: 'text' }
  | { readonly kind: 'between' }
  | { readonly kind: 'attribute'; readonly name: string; readonly prefix: string };

const URL_ATTRIBUTES = new Set(['href', 'src', 'action', 'formaction', 'cite', 'data', 'poster', 'ping']);

function kindOf(name: string): 'plain' | 'url' | 'closed' {
  if (URL_ATTRIBUTES.has(name)) return 'url';
  return /^on|^style$|^srcdoc$|^srcset$|^http-equiv$/.test(name) ? 'closed' : 'plain';
}

/**
 * Reads the static parts and says where each value stands. Throws when a value could break out of its place.
 */
function placesOf(parts: readonly string[]): readonly Place[] {
  const places: Place[] = [];
  let where: 'text' | 'tag' | 'value' = 'text';
  let name = '';
  let value = '';
  parts.forEach((part, index) => {
    if (/<(?:script|style|iframe|object|!--)/i.test(part)) {
      throw new TypeError('A template holds no script, style, frame, object or comment.');
    }
    for (let at = 0; at < part.length; at += 1) {
      const character = part[at] ?? '';
      if (where === 'text') {
        if (character === '<') where = 'tag';
      } else if (where === 'tag') {
        if (character === '>') where = 'text';
        else if (character === '<' || character === "'") throw new TypeError('A tag is not well formed.');
        else if (character === '=') {
          name = /[\w-]+$/.exec(part.slice(0, at))?.[0].toLowerCase() ?? '';
          if (name === '' || part[at + 1] !== '"')
            throw new TypeError('Attribute values stand in double quotes.');
          where = 'value';
          value = '';
          at += 1;
        }
      } else if (character === '"') where = 'tag';
      else value += character;
    }
    if (index === parts.length - 1) return;
    if (where === 'text') places.push({ kind: 'text' });
    else if (where === 'value') {
      places.push({ kind: 'attribute', name, prefix: value });
      value += '\u0000';
    } else {
      if (/<\/?$/.test(part)) throw new TypeError('A tag name is never a value.');
      places.push({ kind: 'between' });
    }
  });
  if (where !== 'text') throw new TypeError('A template ends outside of a tag.');
  return places;
}

function inText(value: Value): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value[text];
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value));
  if (Array.isArray(value)) return (value as readonly (string | Html)[]).map(inText).join('');
  throw new TypeError('Text takes strings, numbers and markup.');
}

function inAttribute(place: Extract<Place, { kind: 'attribute' }>, value: Value): string {
  const kind = kindOf(place.name);
  if (kind === 'closed') throw new TypeError(`The attribute ${place.name} takes no value from outside.`);
  const isUrl = kind === 'url' || (place.name === 'content' && /url=$/i.test(place.prefix));
  if (isUrl) {
    if (!(value instanceof SafeUrl))
      throw new TypeError(`The attribute ${place.name} takes only a checked URL.`);
    if (kind === 'url' && place.prefix !== '')
      throw new TypeError('A URL is the whole value of its attribute.');
    return escape(value[text]);
  }
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value));
  throw new TypeError(`The attribute ${place.name} takes a string or a number.`);
}

const known = new WeakMap<TemplateStringsArray, readonly Place[]>();

/** The template tag. Throws a TypeError for a value that has no safe form at its place. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  let places = known.get(parts);
  if (places === undefined) {
    places = placesOf(parts);
    known.set(parts, places);
  }
  let markup = parts[0] ?? '';
  values.forEach((value, index) => {
    const place = places[index];
    if (place?.kind === 'text') markup += inText(value);
    else if (place?.kind === 'attribute') markup += inAttribute(place, value);
    else if (value instanceof Attributes) markup += value[text];
    else throw new TypeError('Between attributes stand only attributes().');
    markup += parts[index + 1] ?? '';
  });
  return new Html(text, markup);
}
