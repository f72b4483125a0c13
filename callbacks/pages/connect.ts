/**
 * The page behind a link: who asks, for what, as whom, what will happen, until when.
 *
 * It shows and does nothing: each button is a POST. It is rendered only for the person for whom the link was
 * made.
 */
import { texts } from '../texts.ts';
import { accountChoices, type AccountChoice } from './account-choice.ts';
import { button, buttonForm, form, type PostTarget } from './form.ts';
import { html, type Html } from './html.ts';
import { padlock } from './mark.ts';
import { linkLasts } from './moment.ts';
import { page, type PageModel } from './page.ts';
import { scopeList, type ScopeView } from './scope.ts';
import { HOST_LENGTH, shown, type Shown } from './shown.ts';

/** Why the person is asked. */
export type ConnectReason =
  /** No connection to this account yet. `called`: the chat's name for it, where the person has several. */
  | { readonly kind: 'first'; readonly called?: string }
  /** A connection exists; the task needs more permissions. */
  | { readonly kind: 'step-up'; readonly account: string }
  /** The provider ended the earlier sign-in. `mayChange`: another account is acceptable as well. */
  | { readonly kind: 'signed-out'; readonly account: string; readonly mayChange: boolean }
  /** The connection is good; the app that started the task has not used it before (R11). */
  | { readonly kind: 'approve-client'; readonly account: string }
  /** Several connections fit; the person picks one. */
  | { readonly kind: 'choose'; readonly accounts: readonly AccountChoice[]; readonly mayAdd: boolean };

/** Model of the page. */
export interface ConnectModel extends PageModel {
  readonly nowMs: number;
  /** End of the wait, in milliseconds since the Unix epoch. */
  readonly deadlineMs: number;
  /** Where *Continue*, *Allow* and *Not now* are sent. */
  readonly form: PostTarget;
  /** Where *Not you?* is sent. */
  readonly switchPerson: PostTarget;
  /** Label of the person who is signed in to this server. */
  readonly person: string;
  /**
   * The app that started the task: its name is what it says about itself; its id was verified with the access
   * token.
   */
  readonly client: { readonly name?: string; readonly id: string };
  /** Title of the tool that started the task. */
  readonly tool: string;
  readonly provider: {
    readonly name: string;
    /** Host of the authorization endpoint. */
    readonly host: string;
  };
  readonly scopes: readonly ScopeView[];
  readonly reason: ConnectReason;
}

function fact(term: string, description: Html): Html {
  return html`<div>
    <dt>${term}</dt>
    <dd>${description}</dd>
  </div>`;
}

function facts(model: ConnectModel, server: Shown): Html {
  const words = texts.connect;
  const person = shown(model.person, 120);
  const client = model.client.name === undefined ? words.unnamedApp : shown(model.client.name);
  const { reason } = model;
  return html`<dl class="facts">
    ${fact(words.asker, html`${server}`)}
    ${fact(
      words.via,
      html`${client} <span class="tag warn">${words.unverified}</span>
        <p class="hint">${words.unverifiedMeaning}</p>
        <p class="hint">${words.appId} <code>${shown(model.client.id, 120)}</code></p>`,
    )}
    ${'account' in reason ? fact(words.account, html`${shown(reason.account, 120)}`) : undefined}
    ${
      reason.kind === 'first' && reason.called !== undefined
        ? fact(words.account, html`${words.called(shown(reason.called, 64))}`)
        : undefined
    }
    ${fact(
      words.person,
      html`${person}
      ${buttonForm(model.switchPerson, 'switch-person', words.notYou, 'quiet', words.notYouLabel(person))}`,
    )}
  </dl>`;
}

function steps(model: ConnectModel, server: Shown, provider: Shown): Html {
  const words = texts.connect;
  const host = html`<strong class="host">${shown(model.provider.host, HOST_LENGTH)}</strong>`;
  const { reason } = model;
  const items =
    reason.kind === 'approve-client'
      ? [
          html`<li>${words.approveStays(provider)}</li>`,
          html`<li>${words.goesOn}</li>`,
          html`<li>${words.approveEnds}</li>`,
        ]
      : reason.kind === 'choose'
        ? [html`<li>${words.chooseStays(host)}</li>`, html`<li>${words.goesOn}</li>`]
        : [
            html`<li>${words.go(host)}${sameAccount(model)}</li>`,
            html`<li>${words.comeBack(server)}</li>`,
            html`<li>${words.goesOn}</li>`,
          ];
  return html`<ol class="steps">
    ${items}
  </ol>`;
}

function sameAccount({ reason }: ConnectModel): string {
  const bound = reason.kind === 'step-up' || (reason.kind === 'signed-out' && !reason.mayChange);
  return bound ? ` ${texts.connect.sameAccount(shown(reason.account, 120))}` : '';
}

function choice({ reason }: ConnectModel, provider: Shown): Html | undefined {
  if (reason.kind === 'choose') return accountChoices(reason.accounts, reason.mayAdd, provider);
  if (reason.kind !== 'signed-out' || !reason.mayChange) return undefined;
  return accountChoices([{ id: 'same', label: reason.account, isSame: true }], true, provider);
}

/** Renders the page. The radio field `account` holds the id of a choice, `same`, or `other`. */
export function connectPage(model: ConnectModel): string {
  const words = texts.connect;
  const { kind } = model.reason;
  const server = shown(model.site.serverName);
  const provider = shown(model.provider.name);
  const heading = words.heading[kind](provider);
  const buttons =
    kind === 'approve-client'
      ? button('approve', words.approve, 'main')
      : button('continue', kind === 'choose' ? words.continueHere : words.continue(provider), 'main');
  return page(model.site, {
    title: heading,
    main: html`<h1>${heading}</h1>
      <p class="lede">${words.lede[kind](shown(model.tool), provider)}</p>
      <section aria-labelledby="who">
        <h2 id="who">${words.who}</h2>
        ${facts(model, server)}
      </section>
      <section aria-labelledby="asks">
        <h2 id="asks">${words.asks[kind](provider)}</h2>
        ${scopeList(model.scopes, texts.scopes.none(provider))}
      </section>
      <section aria-labelledby="next">
        <h2 id="next">${words.nextHeading}</h2>
        ${steps(model, server, provider)}
        <p class="secrecy">${padlock}<span>${words.secrecy}</span></p>
      </section>
      ${form(
        model.form,
        html`${choice(model, provider)}
          <div class="buttons">${buttons} ${button('decline', words.decline, 'plain')}</div>
          ${linkLasts(model.deadlineMs, model.nowMs)}`,
      )}`,
  });
}
