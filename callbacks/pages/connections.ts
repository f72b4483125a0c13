/** *My connections*: what this server holds for one person. Shown to that person only; holds no token. */
import { texts } from '../texts.ts';
import { form, button, type PostTarget } from './form.ts';
import { html, localPath, type Html } from './html.ts';
import { day, moment } from './moment.ts';
import { page, type PageModel } from './page.ts';
import { scopeList, type ScopeView } from './scope.ts';
import { shown, type Shown } from './shown.ts';

/** A task that waits for a connection. */
export interface WaitingTask {
  readonly title: string;
  readonly deadlineMs: number;
  /** Path of its link, where the person may answer it from here. */
  readonly linkPath?: string;
}

/** One connection. */
export interface ConnectionView {
  /** Value of the field `connection`. */
  readonly id: string;
  readonly providerName: string;
  readonly account?: string;
  readonly status: 'active' | 'needs_sign_in' | 'revoked';
  readonly scopes: readonly ScopeView[];
  readonly createdAtMs: number;
  readonly lastUsedMs?: number;
  /** Labels of the apps that were approved for it (R11). */
  readonly clients: readonly string[];
  readonly waiting: readonly WaitingTask[];
}

/** Model of the page. */
export interface ConnectionsModel extends PageModel {
  readonly nowMs: number;
  readonly person: string;
  /** Where *Disconnect* is sent; the answer is a page that asks for confirmation. */
  readonly form: PostTarget;
  /** Where *Not you?* is sent. */
  readonly switchPerson: PostTarget;
  readonly connections: readonly ConnectionView[];
  /** Outcome of the step before. `forgotten`: deleted here only (R5). */
  readonly notice?: { readonly kind: 'disconnected' | 'forgotten' | 'saved'; readonly providerName: string };
}

function waitingTask(task: WaitingTask, nowMs: number): Html {
  const title = shown(task.title);
  const answer =
    task.linkPath === undefined
      ? undefined
      : html` <a href="${localPath(task.linkPath)}" aria-label="${texts.connections.openLabel(title)}"
          >${texts.connections.open}</a
        >`;
  const left = texts.left(task.deadlineMs - nowMs);
  return html`<li>${texts.connections.waitingUntil(title, moment(task.deadlineMs), left)}${answer}</li>`;
}

function facts(connection: ConnectionView, provider: Shown): Html {
  const words = texts.connections;
  const clients =
    connection.clients.length === 0
      ? words.noClients
      : html`<ul>
          ${connection.clients.map((client) => html`<li>${shown(client)}</li>`)}
        </ul>`;
  return html`<dl class="facts">
    <div>
      <dt>${words.may}</dt>
      <dd>${scopeList(connection.scopes, texts.scopes.noneHeld(provider))}</dd>
    </div>
    <div>
      <dt>${words.created}</dt>
      <dd>${day(connection.createdAtMs)}</dd>
    </div>
    <div>
      <dt>${words.lastUsed}</dt>
      <dd>${connection.lastUsedMs === undefined ? words.never : moment(connection.lastUsedMs)}</dd>
    </div>
    <div>
      <dt>${words.clients}</dt>
      <dd>${clients}</dd>
    </div>
  </dl>`;
}

function item(connection: ConnectionView, index: number, model: ConnectionsModel): Html {
  const words = texts.connections;
  const provider = shown(connection.providerName);
  const account = shown(connection.account ?? words.unnamedAccount, 120);
  const waiting =
    connection.waiting.length === 0
      ? undefined
      : html`<h3>${words.waiting}</h3>
          <ul class="waiting">
            ${connection.waiting.map((task) => waitingTask(task, model.nowMs))}
          </ul>`;
  const disconnect =
    connection.status === 'revoked'
      ? undefined
      : form(
          model.form,
          html`<input type="hidden" name="connection" value="${connection.id}" />
            <div class="buttons">
              ${button('disconnect', words.disconnect, 'plain', words.disconnectLabel(provider, account))}
            </div>`,
        );
  return html`<li class="card">
    <article aria-labelledby="connection-${index}">
      <div class="card-head">
        <h2 id="connection-${index}">${provider} <span class="account">${account}</span></h2>
        <span class="tag ${connection.status}">${words.status[connection.status]}</span>
      </div>
      ${waiting} ${facts(connection, provider)} ${disconnect}
    </article>
  </li>`;
}

/** Renders the page. */
export function connectionsPage(model: ConnectionsModel): string {
  const words = texts.connections;
  const person = shown(model.person, 120);
  const notice =
    model.notice === undefined
      ? undefined
      : html`<p class="notice" role="status">
          ${words.notice[model.notice.kind](shown(model.notice.providerName))}
        </p>`;
  const connections =
    model.connections.length === 0
      ? html`<div class="empty">
          <h2>${words.empty}</h2>
          <p>${words.emptyMeaning}</p>
        </div>`
      : html`<ul class="cards">
          ${model.connections.map((connection, index) => item(connection, index, model))}
        </ul>`;
  return page(model.site, {
    title: words.heading,
    wide: true,
    main: html`<h1>${words.heading}</h1>
      <p class="lede">${words.lede(shown(model.site.serverName))}</p>
      ${notice}
      <div class="person">
        <p>${texts.you} <strong>${person}</strong>.</p>
        ${form(
          model.switchPerson,
          button('switch-person', texts.connect.notYou, 'quiet', texts.connect.notYouLabel(person)),
        )}
      </div>
      ${connections}`,
  });
}
