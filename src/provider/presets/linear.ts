/** Linear. GraphQL: errors may come with status 200 or 400. Tokens live a day and rotate since 2026-04-01. */
import type { ProfileInput } from '../profile.ts';

const TYPE = 'errors.0.extensions.type';

export const linear: ProfileInput = {
  displayName: 'Linear',
  authorizationEndpoint: 'https://linear.app/oauth/authorize',
  tokenEndpoint: 'https://api.linear.app/oauth/token',
  scopeSeparator: ',',
  alwaysScopes: ['read'],
  consentParameters: { prompt: 'consent' },
  refresh: { rotates: true },
  revocation: { endpoint: 'https://api.linear.app/oauth/revoke' },
  identity: {
    url: 'https://api.linear.app/graphql',
    method: 'POST',
    body: '{"query":"{ viewer { id email } }"}',
    subject: 'data.viewer.id',
    label: 'data.viewer.email',
  },
  api: {
    origins: ['https://api.linear.app'],
    expiredWhen: [{ status: [401] }, { members: { [TYPE]: ['authentication error'] } }],
    insufficientWhen: [{ members: { [TYPE]: ['forbidden'] } }],
    limitedWhen: [{ status: [429] }, { members: { 'errors.0.extensions.code': ['RATELIMITED'] } }],
  },
  sources: [
    'linear.app/developers/oauth-2-0-authentication.md (2026-11)',
    'linear/linear packages/sdk/src/error.ts (2026-08); superset-sh/superset#4002',
  ],
  unverified: ['revocation', 'refresh.graceMs'],
};
