/**
 * The frame of every page: document, landmarks, style, mark. No script, nothing from another origin.
 */
import { texts } from '../texts.ts';
import { html, localPath, trustedHtml, type Html, type SafeUrl } from './html.ts';
import { icon, mark } from './mark.ts';
import { HOST_LENGTH, shown } from './shown.ts';
import { STYLE } from './style.ts';

/** What every page knows about the server; all of it comes from the configuration. */
export interface Site {
  /** Name of the server as its operator configured it. */
  readonly serverName: string;
  /** Host of the public URL, as the address bar shows it. */
  readonly host: string;
  /** Path of the home page, with the prefix of the public URL if it has one. */
  readonly homePath: string;
  /** Path of *My connections*; left out where the operator turned that page off. */
  readonly connectionsPath?: string;
}

/** The part of a model that all pages share. */
export interface PageModel {
  readonly site: Site;
}

/** What a page puts into the frame. */
export interface Content {
  /** Title of the page, without the server's name. */
  readonly title: string;
  readonly main: Html;
  /** Address to which the browser moves on at once. */
  readonly moveTo?: SafeUrl;
  /** Wider column for lists. */
  readonly wide?: boolean;
}

const style = trustedHtml(`<style>${STYLE}</style>`);

/** A whole document. */
export function page(site: Site, content: Content): string {
  const server = shown(site.serverName);
  const host = html`<span class="host">${shown(site.host, HOST_LENGTH)}</span>`;
  const connections =
    site.connectionsPath === undefined
      ? undefined
      : html`<nav aria-label="${server}">
          <a href="${localPath(site.connectionsPath)}">${texts.myConnections}</a>
        </nav>`;
  const moveTo =
    content.moveTo === undefined
      ? undefined
      : html`<meta http-equiv="refresh" content="0;url=${content.moveTo}" />`;
  return html`<!doctype html>
    <html lang="${texts.lang}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex, nofollow" />
        <meta name="format-detection" content="telephone=no" />
        ${moveTo}
        <title>${texts.title(content.title, server)}</title>
        ${icon}${style}
      </head>
      <body class="${content.moveTo === undefined ? (content.wide === true ? 'wide' : 'narrow') : 'leaving'}">
        <header>
          <a class="brand" href="${localPath(site.homePath)}">${mark}<span>${server}</span></a>
        </header>
        <main>${content.main}</main>
        <footer>
          <p>${texts.footer(server, host)}</p>
          ${connections}
        </footer>
      </body>
    </html> `.toString();
}
