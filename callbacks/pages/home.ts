/** The page at the root: what this server is. It names nobody and nothing that is stored. */
import { texts } from '../texts.ts';
import { html } from './html.ts';
import { page, type PageModel } from './page.ts';
import { shown } from './shown.ts';

/** Model of the page. */
export interface HomeModel extends PageModel {
  /** Address that a person enters in an MCP client. */
  readonly mcpUrl: string;
}

/** Renders the page. */
export function homePage(model: HomeModel): string {
  const words = texts.homePage;
  return page(model.site, {
    title: texts.home,
    main: html`<h1>${words.heading(shown(model.site.serverName))}</h1>
      <p class="lede">${words.lede}</p>
      <section aria-labelledby="how">
        <h2 id="how">${words.how}</h2>
        <ol class="steps">
          ${words.steps.map((step) => html`<li>${step}</li>`)}
        </ol>
      </section>
      <section aria-labelledby="endpoint">
        <h2 id="endpoint">${words.endpoint}</h2>
        <p><code>${shown(model.mcpUrl, 400)}</code></p>
      </section>`,
  });
}
