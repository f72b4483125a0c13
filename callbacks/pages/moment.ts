/**
 * Points in time, written for people and for machines. The server's clock decides; the browser computes
 * nothing.
 */
import { texts } from '../texts.ts';
import { html, type Html } from './html.ts';

function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** Date, hour and minute in UTC. */
export function moment(ms: number): Html {
  return html`<time datetime="${iso(ms)}">${texts.moment(ms)}</time>`;
}

/** The date alone, for things of the past. */
export function day(ms: number): Html {
  return html`<time datetime="${iso(ms)}">${texts.day(ms)}</time>`;
}

/** How long the link still works. At the deadline it is over (D1). */
export function linkLasts(deadlineMs: number, nowMs: number): Html {
  const sentence =
    nowMs < deadlineMs
      ? texts.linkLasts(moment(deadlineMs), texts.left(deadlineMs - nowMs))
      : texts.linkOver(moment(deadlineMs));
  return html`<p class="lasts">${sentence}</p>`;
}
