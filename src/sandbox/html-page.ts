/**
 * Reads a page as far as somebody without eyes has to: its title, its forms with their fields and buttons,
 * and where it moves on by itself. For pages that are written well; it repairs nothing. Pure.
 */

/** A button that sends its form. */
export interface Button {
  /** Empty for a button without a name. */
  readonly name: string;
  readonly value: string;
}

export interface Form {
  /** Absolute URL. */
  readonly action: string;
  readonly method: 'GET' | 'POST';
  /** What is sent besides the button: values as they stand on the page. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly buttons: readonly Button[];
}

export interface Page {
  readonly url: string;
  readonly status: number;
  readonly html: string;
  readonly title: string;
  readonly forms: readonly Form[];
  /** Absolute URL that the page moves on to without a delay; undefined when it stays. */
  readonly movesTo: string | undefined;
}

const TAG = /<(\/?)([a-z][\w-]*)((?:\s+[^\s"'>/=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*)\s*\/?>/gi;
const ATTRIBUTE = /([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/g;

/** Reads a page. */
export function readPage(url: string, status: number, html: string): Page {
  const visible = html
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/<(style|script|template)\b[\s\S]*?<\/\1\s*>/gi, '');
  const forms: { action: string; method: 'GET' | 'POST'; fields: [string, string][]; buttons: Button[] }[] =
    [];
  let open: (typeof forms)[number] | undefined;
  let select: { name: string; value: string | undefined } | undefined;
  let movesTo: string | undefined;

  for (const match of visible.matchAll(TAG)) {
    const [whole, closing, rawName = '', rawAttributes = ''] = match;
    const tag = rawName.toLowerCase();
    const after = match.index + whole.length;
    if (closing === '/') {
      if (tag === 'form') open = undefined;
      if (tag === 'select' && select !== undefined) {
        if (select.value !== undefined) open?.fields.push([select.name, select.value]);
        select = undefined;
      }
      continue;
    }
    const attributes = attributesOf(rawAttributes);
    const name = attributes.get('name') ?? '';
    if (tag === 'meta') movesTo ??= refreshOf(attributes, url);
    if (tag === 'form') {
      const action = attributes.get('action');
      open = {
        action: new URL(action === undefined || action === '' ? url : action, url).href,
        method: attributes.get('method')?.toLowerCase() === 'post' ? 'POST' : 'GET',
        fields: [],
        buttons: [],
      };
      forms.push(open);
    }
    if (open === undefined || attributes.has('disabled')) continue;
    const type = attributes.get('type')?.toLowerCase();
    if (tag === 'button' && (type ?? 'submit') === 'submit') {
      open.buttons.push({ name, value: attributes.get('value') ?? '' });
    } else if (tag === 'input' && type === 'submit') {
      open.buttons.push({ name, value: attributes.get('value') ?? 'Submit' });
    } else if (tag === 'input' && name !== '') {
      const isChoice = type === 'checkbox' || type === 'radio';
      if (type === 'button' || type === 'reset' || (isChoice && !attributes.has('checked'))) continue;
      open.fields.push([name, attributes.get('value') ?? (isChoice ? 'on' : '')]);
    } else if (tag === 'textarea' && name !== '') {
      const text = visible.slice(after, visible.indexOf('</textarea', after));
      open.fields.push([name, decode(text).replace(/^\n/, '')]);
    } else if (tag === 'select' && name !== '') {
      select = { name, value: undefined };
    } else if (tag === 'option' && select !== undefined) {
      if (select.value === undefined || attributes.has('selected'))
        select.value = attributes.get('value') ?? '';
    }
  }
  const title = decode(/<title[^>]*>([\s\S]*?)<\/title>/i.exec(visible)?.[1] ?? '').trim();
  return { url, status, html, title, forms, movesTo };
}

function attributesOf(text: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [, name = '', double, single, bare] of text.matchAll(ATTRIBUTE)) {
    const key = name.toLowerCase();
    if (!attributes.has(key)) attributes.set(key, decode(double ?? single ?? bare ?? ''));
  }
  return attributes;
}

function refreshOf(attributes: ReadonlyMap<string, string>, url: string): string | undefined {
  if (attributes.get('http-equiv')?.toLowerCase() !== 'refresh') return undefined;
  const target = /^\s*0\s*[;,]\s*url\s*=\s*['"]?([^'"]+)/i.exec(attributes.get('content') ?? '')?.[1];
  return target === undefined ? undefined : new URL(target.trim(), url).href;
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
};

function decode(text: string): string {
  return text.replace(/&(?:#x([\da-f]+)|#(\d+)|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return ENTITIES[String(name)] ?? whole;
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}
