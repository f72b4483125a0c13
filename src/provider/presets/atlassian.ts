/**
 * Atlassian (Jira and Confluence, 3LO). A refresh token that is over answers 403 `unauthorized_client`; a
 * scope that is missing answers 401, which must not cost a refresh for ever.
 */
import type { ProfileInput } from '../profile.ts';

export const atlassian: ProfileInput = {
  displayName: 'Atlassian',
  authorizationEndpoint: 'https://auth.atlassian.com/authorize',
  tokenEndpoint: 'https://auth.atlassian.com/oauth/token',
  tokenRequest: 'json',
  alwaysScopes: ['offline_access', 'read:me'],
  authorizationParameters: { audience: 'api.atlassian.com', prompt: 'consent' },
  refresh: { rotates: true, graceMs: 600_000 },
  errors: { dead: ['unauthorized_client'] },
  identity: { url: 'https://api.atlassian.com/me', subject: 'account_id', label: 'email' },
  api: {
    origins: ['https://api.atlassian.com'],
    insufficientWhen: [{ status: [401], bodyHas: ['scope does not match'] }],
    limit: { resetHeader: 'x-ratelimit-reset', resetAs: 'date' },
  },
  sources: [
    'community.developer.atlassian.com t/60806, t/83103 (grace), t/50348 (403), t/78270 (401 for scopes)',
    'npm arctic 3.7.0, @better-auth/core 1.7.25 (2026-11)',
  ],
  unverified: ['pkce', 'api.expiredWhen', 'revocation'],
};
