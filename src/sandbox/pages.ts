/**
 * Pages of the sandbox's two authorization servers: choose who you are, agree, what went wrong. Plain HTML
 * without script; every button has a name and a value, so that a person, a browser test and a scripted
 * person press the same things:
 *
 * - `<button name="person" value="<account id>">` signs in,
 * - `<button name="action" value="allow">` and `value="deny"` answer the question for consent.
 */
import { html, localPath, trustedHtml, type Html } from '../../callbacks/pages/html.ts';
import { shown } from '../../callbacks/pages/shown.ts';
import type { Account } from './accounts.ts';

/** Who stands behind the pages. */
export interface Brand {
  readonly name: string;
  /** What the site is to the person who lands on it. */
  readonly tagline: string;
}

const STYLE = `
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 30rem; padding: 12vh 1.25rem 3rem;
  font: 1.05rem/1.5 system-ui, sans-serif; }
header { font-weight: 650; }
header span { font-weight: 400; opacity: 0.75; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 1.5rem 0 0.75rem; }
form { display: grid; gap: 0.75rem; margin-top: 1.25rem; }
button { font: inherit; padding: 0.7rem 1rem; border: 1px solid; border-radius: 0.5rem;
  cursor: pointer; text-align: left; }
footer { margin-top: 2.5rem; font-size: 0.9rem; opacity: 0.75; }
`;

/** Headers of every page. No `form-action`: the answer to a form leads on to other sites. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Asks who somebody is. */
export function choosePersonPage(
  brand: Brand,
  path: string,
  accounts: readonly Account[],
  client: string,
): string {
  return page(
    brand,
    `Sign in to ${brand.name}`,
    html`<p>${shown(client)} asks who you are.</p>
      <form method="post" action="${localPath(path)}">
        ${accounts.map(
          (account) =>
            html`<button name="person" value="${account.id}">
              ${account.name} <small>${account.id}</small>
            </button>`,
        )}
      </form>`,
  );
}

/** Asks for consent. */
export function consentPage(
  brand: Brand,
  path: string,
  person: string,
  client: string,
  scopes: readonly string[],
): string {
  return page(
    brand,
    `Let ${shown(client)} use your ${brand.name} account?`,
    html`<p>You are signed in as <strong>${person}</strong>. It asks for:</p>
      <ul>
        ${scopes.map((scope) => html`<li><code>${shown(scope)}</code></li>`)}
      </ul>
      <form method="post" action="${localPath(path)}">
        <button name="action" value="allow">Allow</button>
        <button name="action" value="deny">Deny</button>
      </form>`,
  );
}

/** Says what went wrong. */
export function troublePage(brand: Brand, error: string, description: string): string {
  return page(
    brand,
    'That did not work',
    html`<p>${shown(description, 300)}</p>
      <p><code>${shown(error)}</code></p>`,
  );
}

function page(brand: Brand, title: string, main: Html): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>${title}</title>
        <link rel="icon" href="data:," />
        ${trustedHtml(`<style>${STYLE}</style>`)}
      </head>
      <body>
        <header>${brand.name} <span>${brand.tagline}</span></header>
        <main>
          <h1>${title}</h1>
          ${main}
        </main>
        <footer>Part of the Keyturn sandbox: nobody here is real, and nothing leaves this machine.</footer>
      </body>
    </html> `.toString();
}
