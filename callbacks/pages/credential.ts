/**
 * The form for what a provider without OAuth needs: an API key, a token, a user name with a key.
 *
 * The model has no place for a value: whatever was typed is never shown again, not even after an error.
 */
import { texts } from '../texts.ts';
import { button, form, type PostTarget } from './form.ts';
import { attributes, html, webUrl, type Html } from './html.ts';
import { padlock } from './mark.ts';
import { linkLasts } from './moment.ts';
import { page, type PageModel } from './page.ts';
import { shown } from './shown.ts';

/** One field of the form. */
export interface CredentialField {
  /** Field name of the form, from the provider's profile: letters, digits, `_` and `-`. */
  readonly name: string;
  readonly label: string;
  /** `secret` is a password field. */
  readonly kind: 'secret' | 'text';
  readonly hint?: string;
  readonly isOptional?: boolean;
  /** Longest value that the server takes, in UTF-16 code units. */
  readonly maxLength: number;
  /** What is wrong with the value that was sent; never contains it. */
  readonly error?: string;
}

/** Model of the page. */
export interface CredentialModel extends PageModel {
  readonly nowMs: number;
  readonly deadlineMs: number;
  readonly form: PostTarget;
  readonly tool: string;
  readonly providerName: string;
  readonly person: string;
  readonly fields: readonly CredentialField[];
  /** Page of the provider that shows where the key is found. */
  readonly helpUrl?: string;
}

function idOf(field: CredentialField): string {
  if (!/^[\w-]{1,64}$/.test(field.name))
    throw new TypeError('A field name holds letters, digits, _ and - only.');
  return `field-${field.name}`;
}

function input(field: CredentialField, isFirstWrong: boolean): Html {
  const id = idOf(field);
  const described = [
    field.error === undefined ? undefined : `${id}-error`,
    field.hint === undefined ? undefined : `${id}-hint`,
  ].filter((part) => part !== undefined);
  const hint =
    field.hint === undefined
      ? undefined
      : html`<p class="hint" id="${id}-hint">${shown(field.hint, 300)}</p>`;
  return html`<div class="field">
    <label for="${id}"
      >${shown(field.label, 120)}${
        field.isOptional === true
          ? html` <span class="optional">(${texts.credential.optional})</span>`
          : undefined
      }</label
    >
    ${hint}
    ${
      field.error === undefined
        ? undefined
        : html`<p class="error" id="${id}-error">${shown(field.error, 300)}</p>`
    }
    <input
      id="${id}"
      name="${field.name}"
      type="${field.kind === 'secret' ? 'password' : 'text'}"
      maxlength="${field.maxLength}"
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
      ${attributes({
        required: field.isOptional !== true,
        autofocus: isFirstWrong,
        'aria-invalid': field.error === undefined ? undefined : 'true',
        'aria-describedby': described.length === 0 ? undefined : described.join(' '),
      })}
    />
  </div>`;
}

function summary(wrong: readonly CredentialField[]): Html | undefined {
  if (wrong.length === 0) return undefined;
  const items = wrong.map(
    (field) => html`<li>${shown(field.label, 120)}: ${shown(field.error ?? '', 300)}</li>`,
  );
  return html`<div class="problems" role="alert">
    <h2>${texts.credential.problems(wrong.length)}</h2>
    <ul>
      ${items}
    </ul>
    <p>${texts.credential.refill}</p>
  </div>`;
}

/** Renders the page. */
export function credentialPage(model: CredentialModel): string {
  const words = texts.credential;
  const provider = shown(model.providerName);
  const wrong = model.fields.filter((field) => field.error !== undefined);
  const heading = words.heading(provider);
  const where =
    model.helpUrl === undefined
      ? undefined
      : html`<p><a href="${webUrl(model.helpUrl)}" rel="noreferrer">${words.where}</a></p>`;
  return page(model.site, {
    title: heading,
    main: html`<h1>${heading}</h1>
      <p class="lede">${words.lede(shown(model.tool), provider)}</p>
      ${summary(wrong)}
      <p>${texts.you} <strong>${shown(model.person, 120)}</strong>.</p>
      ${where}
      ${form(
        model.form,
        html`${model.fields.map((field) => input(field, field === wrong[0]))}
          <p class="secrecy">${padlock}<span>${words.secrecy}</span></p>
          <div class="buttons">
            ${button('save', words.save, 'main')} ${button('decline', texts.connect.decline, 'plain')}
          </div>
          ${linkLasts(model.deadlineMs, model.nowMs)}`,
      )}`,
  });
}
