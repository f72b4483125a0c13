/**
 * HubSpot. The old `/oauth/v1` endpoints end on 2027-02-16. Scopes come as a list; old errors have no
 * `error`.
 */
import type { ProfileInput } from '../profile.ts';

export const hubspot: ProfileInput = {
  displayName: 'HubSpot',
  authorizationEndpoint: 'https://app.hubspot.com/oauth/authorize',
  tokenEndpoint: 'https://api.hubapi.com/oauth/2026-03/token',
  alwaysScopes: ['oauth'],
  capture: ['hub_id', 'user_id'],
  errors: { dead: ['BAD_REFRESH_TOKEN'] },
  identity: {
    captured: ['hub_id', 'user_id'],
    probe: 'https://api.hubapi.com/account-info/v3/details',
  },
  api: {
    origins: ['https://api.hubapi.com'],
    insufficientWhen: [{ status: [403], members: { category: ['MISSING_SCOPES'] } }],
    pagination: { kind: 'cursor', from: 'paging.next.after', parameter: 'after' },
  },
  sources: [
    'developers.hubspot.com oauth-tokens migration guide, auth-oauth-v3 guide (2026-11); dubinc/dub#2898',
    'nango.dev/blog/hubspot-oauth-bad-refresh-token',
  ],
  unverified: ['alwaysScopes', 'identity', 'refresh.rotates', 'pkce', 'revocation', 'api.insufficientWhen'],
};
