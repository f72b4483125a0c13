/**
 * The headers of every page that a person sees.
 *
 * The policy starts from nothing and allows three things: our one style sheet (by hash), the icon (a `data:`
 * URL), and forms to ourselves. The provider is not named in `form-action`: the page after *Continue*
 * navigates instead (R14).
 *
 * With `no-referrer` a browser sends `Origin: null` with our own forms (Fetch, section 3.2.5): a check of
 * where a form came from reads `Sec-Fetch-Site` and the CSRF field, not `Origin`.
 */
import { createHash } from 'node:crypto';
import { STYLE } from './pages/style.ts';

const styleHash = createHash('sha256').update(STYLE).digest('base64');

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  'img-src data:',
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** What no page of ours uses; an empty list switches a feature off for the page and its frames. */
const FEATURES = [
  'accelerometer',
  'autoplay',
  'browsing-topics',
  'camera',
  'clipboard-read',
  'display-capture',
  'fullscreen',
  'geolocation',
  'gyroscope',
  'hid',
  'identity-credentials-get',
  'idle-detection',
  'local-fonts',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'picture-in-picture',
  'publickey-credentials-get',
  'screen-wake-lock',
  'serial',
  'storage-access',
  'usb',
  'xr-spatial-tracking',
]
  .map((feature) => `${feature}=()`)
  .join(', ');

/**
 * Headers of a page, names in lower case.
 *
 * @param isHttps whether the public URL is https: only then is HSTS sent (RFC 6797, section 7.2)
 */
export function securityHeaders(isHttps: boolean): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': POLICY,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': FEATURES,
    'x-robots-tag': 'noindex, nofollow',
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}
