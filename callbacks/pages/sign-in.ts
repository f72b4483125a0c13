/**
 * Nobody is signed in here, or the sign-in is too old for this step (R9). It says nothing about the task
 * behind a link.
 */
import { texts } from '../texts.ts';
import { button, form, type PostTarget } from './form.ts';
import { html } from './html.ts';
import { linkLasts } from './moment.ts';
import { page, type PageModel } from './page.ts';
import { HOST_LENGTH, shown } from './shown.ts';

/** Model of the page. */
export interface SignInModel extends PageModel {
  /** What the visitor came for, or that the sign-in is older than ten minutes. */
  readonly why: 'nobody' | 'connections' | 'stale';
  /** Where *Sign in* is sent. */
  readonly form: PostTarget;
  /** Host of the issuer that signs people in to this server. */
  readonly issuerHost: string;
  /** Who is signed in now, for `stale`. */
  readonly person?: string;
  /** Lifetime of the link, where there is one. */
  readonly link?: { readonly deadlineMs: number; readonly nowMs: number };
}

/** Renders the page. */
export function signInPage(model: SignInModel): string {
  const words = texts.signIn;
  const server = shown(model.site.serverName);
  const host = html`<strong class="host">${shown(model.issuerHost, HOST_LENGTH)}</strong>`;
  const heading = words.heading(server);
  const signedIn =
    model.person === undefined
      ? undefined
      : html`<p>${texts.you} <strong>${shown(model.person, 120)}</strong>.</p>`;
  return page(model.site, {
    title: heading,
    main: html`<h1>${heading}</h1>
      <p class="lede">${words[model.why](server)}</p>
      ${signedIn}
      <p>${words.how(host)} ${words.nothingYet}</p>
      ${form(
        model.form,
        html`<div class="buttons">
          ${button('sign-in', words.button(server), 'main')}
          ${model.person === undefined ? undefined : button('switch-person', words.someoneElse, 'plain')}
        </div>`,
      )}
      ${model.link === undefined ? undefined : linkLasts(model.link.deadlineMs, model.link.nowMs)}`,
  });
}
