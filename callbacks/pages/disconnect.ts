/** The question after *Disconnect*: what ends, and what the provider keeps (R5). */
import { texts } from '../texts.ts';
import { button, form, type PostTarget } from './form.ts';
import { html, localPath } from './html.ts';
import { page, type PageModel } from './page.ts';
import { shown } from './shown.ts';

/** Model of the page. */
export interface DisconnectModel extends PageModel {
  /** Where *Disconnect* is sent, with the action `confirm-disconnect`. */
  readonly form: PostTarget;
  /** Value of the field `connection`. */
  readonly connectionId: string;
  readonly providerName: string;
  readonly account?: string;
  /** `revoke`: the provider ends this token alone. `forget`: the key is only deleted here. */
  readonly ending: 'revoke' | 'forget';
  /** Titles of the tasks that wait for the connection. */
  readonly waiting: readonly string[];
  /** Path back to *My connections*. */
  readonly backPath: string;
}

/** Renders the page. */
export function disconnectPage(model: DisconnectModel): string {
  const words = texts.disconnect;
  const provider = shown(model.providerName);
  const account = shown(model.account ?? texts.connections.unnamedAccount, 120);
  const heading = words.heading(provider);
  return page(model.site, {
    title: heading,
    main: html`<h1>${heading}</h1>
      <p class="lede">${words.about(provider, account)}</p>
      <section aria-labelledby="ends">
        <h2 id="ends">${words.ends}</h2>
        <ul class="plain">
          <li>${model.ending === 'revoke' ? words.revokes(provider) : words.forgets(provider)}</li>
          <li>${words.tasks(model.waiting.map((title) => shown(title)))}</li>
          <li>${words.again}</li>
        </ul>
      </section>
      ${form(
        model.form,
        html`<input type="hidden" name="connection" value="${model.connectionId}" />
          <div class="buttons">
            ${button('confirm-disconnect', words.confirm, 'danger')}
            <a class="button plain" href="${localPath(model.backPath)}">${words.keep}</a>
          </div>`,
      )}`,
  });
}
