/**
 * Figma. Refreshes at an address of its own; errors have `error: true`; 403 is the answer to an expired token
 * as well as to a missing right, so both cost one refresh and the identity endpoint decides.
 */
import type { ProfileInput } from '../profile.ts';

export const figma: ProfileInput = {
  displayName: 'Figma',
  authorizationEndpoint: 'https://www.figma.com/oauth',
  tokenEndpoint: 'https://api.figma.com/v1/oauth/token',
  refreshEndpoint: 'https://api.figma.com/v1/oauth/refresh',
  clientAuthentication: 'client_secret_basic_raw',
  alwaysScopes: ['current_user:read'],
  refresh: { rotates: false },
  identity: { url: 'https://api.figma.com/v1/me', subject: 'id', label: 'email' },
  api: {
    origins: ['https://api.figma.com'],
    expiredWhen: [{ status: [401, 403] }],
    insufficientWhen: [],
    pagination: { kind: 'url', from: 'pagination.next_page' },
  },
  sources: ['figma/rest-api-spec (2026-03); arcticjs.dev/providers/figma; forum.figma.com 33052'],
  unverified: [
    'errors.dead',
    'refreshEndpoint',
    'scopeSeparator',
    'alwaysScopes',
    'api.expiredWhen',
    'api.pagination',
  ],
};
