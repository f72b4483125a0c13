/**
 * Atlassian (Jira and Confluence, 3LO). A refresh token that is over answers 403 `unauthorized_client`; a
 * scope that is missing answers 401, which must not cost a refresh for ever.
 */
import type { ProfileInput } from '../profile.ts';

export const atlassian: ProfileInput = {
  displayName: 'Atlassian',
  authorizationEndpoint: 'https://auth.atlassian.com/authorize',
  tokenEndpoint: 'https://auth.atlassian.com/oauth/token',
  // Takes the challenge, but does not look at the verifier.
  pkce: 'ignored',
  tokenRequest: 'json',
  alwaysScopes: ['offline_access', 'read:me'],
  authorizationParameters: { audience: 'api.atlassian.com', prompt: 'consent' },
  refresh: { rotates: true, graceMs: 600_000 },
  errors: {
    dead: [{ code: 'unauthorized_client', status: 403 }],
    // A wrong client secret: 401 `access_denied`.
    misconfigured: ['access_denied'],
  },
  identity: { url: 'https://api.atlassian.com/me', subject: 'account_id', label: 'email' },
  api: {
    origins: ['https://api.atlassian.com'],
    insufficientWhen: [{ status: [401], bodyHas: ['scope does not match'] }],
    limit: { resetHeader: 'x-ratelimit-reset', resetAs: 'date' },
    // Jira's newer lists; Confluence and older ones have ways of their own.
    pagination: { kind: 'cursor', from: 'nextPageToken', parameter: 'nextPageToken' },
  },
  sources: [
    'community.developer.atlassian.com t/60806, t/83103 (grace), t/50348 (403), t/78270 (401 for scopes)',
    'Meridiona/meridian#218: PKCE is ignored, access_denied for a wrong client (2026-06)',
    'npm arctic 3.7.0, @better-auth/core 1.7.25 (2026-11)',
  ],
  unverified: ['identity', 'errors.dead', 'api.expiredWhen', 'api.pagination', 'revocation'],
};
