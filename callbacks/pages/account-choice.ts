/** The choice among accounts at one provider: radio buttons in the form of the page. */
import { texts } from '../texts.ts';
import { attributes, html, type Html } from './html.ts';
import { day } from './moment.ts';
import { shown, type Shown } from './shown.ts';

/** One account that the person has connected before. */
export interface AccountChoice {
  /**
   * Value of the field `account`. Not `other`, which stands for an account that is chosen at the provider.
   */
  readonly id: string;
  readonly label: string;
  readonly lastUsedMs?: number;
  /** Marks the account of the sign-in that ended. */
  readonly isSame?: boolean;
}

/**
 * A group of radio buttons; the first is chosen, so that a press of the main button always means something.
 */
export function accountChoices(accounts: readonly AccountChoice[], mayAdd: boolean, provider: Shown): Html {
  const words = texts.connect;
  const items = accounts.map((account, index) => {
    const hint =
      account.isSame === true
        ? words.sameAgain
        : account.lastUsedMs === undefined
          ? words.neverUsed
          : words.lastUsed(day(account.lastUsedMs));
    return radio(account.id, `account-${index}`, shown(account.label, 120), hint, index === 0);
  });
  const other = radio(
    'other',
    'account-other',
    words.otherAccount,
    words.otherAccountMeaning(provider),
    accounts.length === 0,
  );
  return html`<fieldset class="choices">
    <legend>${words.accountsLegend}</legend>
    ${items} ${mayAdd ? other : undefined}
  </fieldset>`;
}

function radio(
  value: string,
  id: string,
  label: string,
  hint: string | readonly (string | Html)[],
  checked: boolean,
): Html {
  return html`<div class="choice">
    <input
      type="radio"
      name="account"
      id="${id}"
      value="${value}"
      aria-describedby="${id}-hint"
      ${attributes({ checked })}
    />
    <label for="${id}">${label}</label>
    <p class="hint" id="${id}-hint">${hint}</p>
  </div>`;
}
