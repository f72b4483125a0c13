/**
 * The next page of a list, as the profile says that the provider tells it. Pure. It never leaves the origin
 * of the page that was read: a link to another place ends with a refusal, not with a request (R16).
 */
import { Refusal } from '../errors.ts';
import { memberAt, textAt } from './answer-path.ts';
import type { Pagination } from './profile.ts';

/** A page as it was read. */
export interface Page {
  readonly url: string | URL;
  readonly headers: Headers;
  /** Parsed JSON. */
  readonly body: unknown;
}

/** The target of `rel="next"` in a `Link` header (RFC 8288 section 3). */
function linkedNext(header: string): string | undefined {
  for (const [, target, parameters = ''] of header.matchAll(/<([^>]*)>((?:\s*;\s*[^,;]+)*)/g)) {
    if (/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\s*(?:;|$))/i.test(parameters)) return target;
  }
  return undefined;
}

/**
 * The address of the page after, or undefined at the end.
 *
 * @throws Refusal `egress_forbidden` when the provider names an address elsewhere (fact `origin`).
 */
export function nextPage(pagination: Pagination, page: Page): string | undefined {
  const here = new URL(page.url);
  let next: URL | null = null;
  switch (pagination.kind) {
    case 'link-header': {
      const target = linkedNext(page.headers.get('link') ?? '');
      if (target === undefined) return undefined;
      next = URL.parse(target, here.href);
      break;
    }
    case 'url': {
      const target = textAt(page.body, pagination.from);
      if (target === undefined) return undefined;
      next = URL.parse(target, here.href);
      break;
    }
    case 'cursor': {
      const cursor = textAt(page.body, pagination.from);
      const more = pagination.more === undefined ? true : memberAt(page.body, pagination.more);
      if (cursor === undefined || more === false) return undefined;
      next = new URL(here);
      next.searchParams.set(pagination.parameter, cursor);
      break;
    }
    case 'number': {
      const items = pagination.items === undefined ? page.body : memberAt(page.body, pagination.items);
      if (!Array.isArray(items) || items.length < pagination.size) return undefined;
      const now = Number(here.searchParams.get(pagination.parameter) ?? pagination.first);
      next = new URL(here);
      next.searchParams.set(pagination.parameter, String(now + pagination.step));
      break;
    }
    case 'last-item': {
      const items = memberAt(page.body, pagination.items);
      const last = Array.isArray(items) ? textAt(items.at(-1), pagination.id) : undefined;
      if (last === undefined || memberAt(page.body, pagination.more) !== true) return undefined;
      next = new URL(here);
      next.searchParams.set(pagination.parameter, last);
    }
  }
  if (next === null || next.origin !== here.origin || next.username !== '') {
    throw new Refusal('egress_forbidden', { facts: { origin: next?.origin ?? 'not an address' } });
  }
  // A page that names itself would be read for ever.
  return next.href === here.href ? undefined : next.href;
}
