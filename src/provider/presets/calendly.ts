/** Calendly. Refresh tokens end at once when they are used; no grace. */
import type { ProfileInput } from '../profile.ts';

export const calendly: ProfileInput = {
  displayName: 'Calendly',
  authorizationEndpoint: 'https://auth.calendly.com/oauth/authorize',
  tokenEndpoint: 'https://auth.calendly.com/oauth/token',
  clientAuthentication: 'client_secret_basic_raw',
  capture: ['organization'],
  refresh: { rotates: true },
  revocation: { endpoint: 'https://auth.calendly.com/oauth/revoke' },
  identity: { url: 'https://api.calendly.com/users/me', subject: 'resource.uri', label: 'resource.email' },
  api: {
    origins: ['https://api.calendly.com'],
    insufficientWhen: [{ status: [403], members: { title: ['Permission Denied'] } }],
    limit: { resetHeader: 'x-ratelimit-reset', resetAs: 'seconds' },
    pagination: { kind: 'url', from: 'pagination.next_page' },
  },
  sources: ['developer.calendly.com how-to-access, refresh-token-rotation-guide, rate-limits (2026-11)'],
  unverified: ['revocation', 'identity', 'api.expiredWhen', 'api.insufficientWhen'],
};
