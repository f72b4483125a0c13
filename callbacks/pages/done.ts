/** The visit came to its end: connected, approved, saved or declined. Shown only after the commit. */
import { texts } from '../texts.ts';
import { html } from './html.ts';
import { SIGNS } from './mark.ts';
import { page, type PageModel } from './page.ts';
import { shown } from './shown.ts';

/** Model of the page. */
export interface DoneModel extends PageModel {
  /**
   * `connected`: the grant is stored and the task goes on. `late`: it is stored, the task was over (D2).
   * `approved`: another app may use the connection (R11). `saved`: a credential form was sent. `declined`:
   * *Not now*.
   */
  readonly variant: 'connected' | 'late' | 'approved' | 'saved' | 'declined';
  readonly providerName: string;
  /** Label of the account at the provider, if it is known. */
  readonly account?: string;
  /** How many other tasks the same sign-in woke. */
  readonly alsoWoken?: number;
}

const SIGN = { connected: 'good', late: 'note', approved: 'good', saved: 'good', declined: 'note' } as const;

/** Renders the page. */
export function donePage(model: DoneModel): string {
  const words = texts.done;
  const { variant } = model;
  const provider = shown(model.providerName);
  const account = model.account === undefined ? undefined : shown(model.account, 120);
  const also = model.alsoWoken ?? 0;
  const heading = words.heading[variant];
  return page(model.site, {
    title: heading,
    main: html`<div class="outcome">
      ${SIGNS[SIGN[variant]]}
      <h1>${heading}</h1>
      <div role="status">
        <p class="lede">${words.meaning[variant](provider, account)}</p>
        <p>${words.after[variant]}</p>
        ${also > 0 ? html`<p>${words.alsoWoken(also)}</p>` : undefined}
      </div>
    </div>`,
  });
}
