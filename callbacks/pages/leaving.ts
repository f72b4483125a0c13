/**
 * The answer of *Continue*: a page that navigates on (R14), since a redirect would be blocked by
 * `form-action`.
 *
 * The refresh has no delay: a delayed one would move the page away from somebody who still reads it (WCAG
 * 2.2.1).
 */
import { texts } from '../texts.ts';
import { html, webUrl } from './html.ts';
import { page, type PageModel } from './page.ts';
import { HOST_LENGTH, shown } from './shown.ts';

/** Model of the page. */
export interface LeavingModel extends PageModel {
  /**
   * Authorization request (RFC 6749, section 4.1.1). Only `https:`, or `http:` on loopback; else a TypeError.
   */
  readonly url: string;
  /** Name of the provider, or of the server's own issuer for a browser sign-in. */
  readonly providerName: string;
}

/** Renders the page. */
export function leavingPage(model: LeavingModel): string {
  const words = texts.leaving;
  const url = webUrl(model.url);
  const provider = shown(model.providerName);
  const host = html`<strong class="host">${shown(new URL(model.url).host, HOST_LENGTH)}</strong>`;
  const heading = words.heading(provider);
  return page(model.site, {
    title: heading,
    moveTo: url,
    main: html`<div class="outcome">
      <h1>${heading}</h1>
      <p class="lede" role="status">${words.next(host)}</p>
      <p>${words.check} ${words.back}</p>
      <p class="buttons"><a class="button main" href="${url}">${words.link(provider)}</a></p>
    </div>`,
  });
}
