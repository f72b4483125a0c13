/** Box. Refresh tokens are good for one use and 60 days; a code lives for 30 seconds. */
import type { ProfileInput } from '../profile.ts';

export const box: ProfileInput = {
  displayName: 'Box',
  authorizationEndpoint: 'https://account.box.com/api/oauth2/authorize',
  tokenEndpoint: 'https://api.box.com/oauth2/token',
  pkce: 'ignored',
  refresh: { rotates: true },
  revocation: { endpoint: 'https://api.box.com/oauth2/revoke' },
  identity: { url: 'https://api.box.com/2.0/users/me', subject: 'id', label: 'login' },
  api: {
    origins: ['https://api.box.com', 'https://upload.box.com'],
    insufficientWhen: [
      { status: [403], challengeHas: ['insufficient_scope'] },
      { status: [403], members: { code: ['insufficient_scope', 'access_denied_insufficient_permissions'] } },
    ],
    pagination: { kind: 'cursor', from: 'next_marker', parameter: 'marker' },
  },
  sources: ['box/box-openapi; box/developer.box.com (2026-08)'],
  unverified: ['pkce', 'revocation.ends', 'api.expiredWhen'],
};
