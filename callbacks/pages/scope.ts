/** Permissions in words, each with the name that the provider uses, so that both can be compared. */
import { texts } from '../texts.ts';
import { html, type Html } from './html.ts';
import { shown } from './shown.ts';

/** One permission. */
export interface ScopeView {
  /** The scope as the provider names it (RFC 6749, section 3.3). */
  readonly name: string;
  /** What it allows, from the provider's profile; left out if the profile does not know it. */
  readonly words?: string;
  /** Whether it goes beyond what was granted before. */
  readonly isNew?: boolean;
}

/**
 * A list of permissions.
 *
 * @param none the sentence for a provider that names no permissions
 */
export function scopeList(scopes: readonly ScopeView[], none: string): Html {
  if (scopes.length === 0) return html`<p>${none}</p>`;
  const items = scopes.map(
    (scope) =>
      html`<li>
        <span
          >${scope.words === undefined ? texts.scopes.unexplained : shown(scope.words, 200)}${
            scope.isNew === true ? html` <strong class="tag">${texts.scopes.added}</strong>` : undefined
          }</span
        >
        <code>${shown(scope.name, 160)}</code>
      </li>`,
  );
  return html`<ul class="scopes">
    ${items}
  </ul>`;
}
