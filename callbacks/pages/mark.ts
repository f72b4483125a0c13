/**
 * The mark, a keyhole turned in its lock, and the small signs of the pages. Drawn inline: nothing is fetched.
 */
import { trustedHtml, type Html } from './html.ts';

/** The mark beside the server's name. */
export const mark: Html = trustedHtml(
  '<svg class="mark" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" focusable="false">' +
    '<circle class="mark-lock" cx="16" cy="16" r="13.5" fill="none" stroke-width="2.5"/>' +
    '<path class="mark-start" d="M16 5.8v.4" stroke-width="2" stroke-linecap="round"/>' +
    '<g class="mark-key"><circle cx="16" cy="12.6" r="4"/><path d="M14.6 13h2.8l1.9 10.6h-6.6z"/></g></svg>',
);

/** The mark in the browser's tab. */
export const icon: Html = trustedHtml(
  '<link rel="icon" href="data:image/svg+xml,' +
    encodeURIComponent(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
        '<rect width="32" height="32" rx="8" fill="#17484a"/>' +
        '<g fill="#f0c46c" transform="rotate(60 16 16)"><circle cx="16" cy="12" r="5"/>' +
        '<path d="M14 13h4l2.4 12h-8.8z"/></g></svg>',
    ) +
    '">',
);

const sign = (name: string, path: string): Html =>
  trustedHtml(
    `<svg class="sign sign-${name}" viewBox="0 0 48 48" width="48" height="48" ` +
      'aria-hidden="true" focusable="false"><circle cx="24" cy="24" r="22"/>' +
      `<path d="${path}" fill="none" stroke-width="3.2" stroke-linecap="round" ` +
      'stroke-linejoin="round"/></svg>',
  );

/** Signs above the heading of an outcome; they repeat what the heading says and add nothing to it. */
export const SIGNS = {
  good: sign('good', 'M15 24.5l6.5 6.5L34 18'),
  note: sign('note', 'M24 22.5v11M24 15v.2'),
  stop: sign('stop', 'M24 14.5v12M24 33v.2'),
} as const;

/** A closed lock, before the sentence on secrecy. */
export const padlock: Html = trustedHtml(
  '<svg class="padlock" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">' +
    '<rect x="3.5" y="8.5" width="13" height="9" rx="2.2" fill="none" stroke-width="1.6"/>' +
    '<path d="M6.5 8.5V6a3.5 3.5 0 0 1 7 0v2.5M10 12v2" fill="none" stroke-width="1.6" ' +
    'stroke-linecap="round"/></svg>',
);
