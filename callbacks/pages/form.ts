/** Forms and buttons: always POST, always with the CSRF field, every button a named action. */
import { attributes, html, localPath, type Html, type Value } from './html.ts';

/** Values of the field `action`, one for each button that a page can show. */
export const ACTIONS = [
  'continue',
  'sign-in',
  'switch-person',
  'decline',
  'retry',
  'disconnect',
  'confirm-disconnect',
  'save',
  'approve',
] as const;

/** What a pressed button asks for. */
export type Action = (typeof ACTIONS)[number];

/** Where a form is sent. */
export interface PostTarget {
  /** Path on this server, beginning with one slash. */
  readonly path: string;
  /** Value of the hidden field `csrf`. */
  readonly csrf: string;
}

/** A form. */
export function form(target: PostTarget, content: Value, label?: string): Html {
  return html`<form method="post" action="${localPath(target.path)}" ${attributes({ 'aria-label': label })}>
    <input type="hidden" name="csrf" value="${target.csrf}" />${content}
  </form>`;
}

/** How much a button stands out. A page has at most one `main` button. */
export type Weight = 'main' | 'plain' | 'quiet' | 'danger';

/**
 * A button that sends its form.
 *
 * @param label for screen readers, where the visible text alone says too little; it contains the visible text
 */
export function button(action: Action, words: string, weight: Weight, label?: string): Html {
  return html`<button
    class="button ${weight}"
    name="action"
    value="${action}"
    ${attributes({ 'aria-label': label, formnovalidate: action !== 'save' })}
  >
    ${words}
  </button>`;
}

/** A form that is one button. */
export function buttonForm(
  target: PostTarget,
  action: Action,
  words: string,
  weight: Weight,
  label?: string,
): Html {
  return form(target, button(action, words, weight, label));
}
