/** GitHub: OAuth apps and GitHub Apps. */
import type { ProfileInput } from '../profile.ts';

/**
 * OAuth app: tokens without an end, no refresh tokens. Errors of the token endpoint come with status 200;
 * granted scopes come with commas.
 */
export const github: ProfileInput = {
  displayName: 'GitHub',
  issuer: 'https://github.com/login/oauth',
  authorizationEndpoint: 'https://github.com/login/oauth/authorize',
  tokenEndpoint: 'https://github.com/login/oauth/access_token',
  scopeWords: {
    repo: 'Read and write your repositories, private ones included',
    'read:org': 'Read which organisations you belong to',
    'read:user': 'Read your profile',
    public_repo: 'Read and write your public repositories',
  },
  consentParameters: { prompt: 'select_account' },
  refresh: { rotates: false },
  revocation: {
    endpoint: 'https://api.github.com/applications/{client_id}/token',
    kind: 'json',
    method: 'DELETE',
    member: 'access_token',
    token: 'access',
    ends: 'token',
  },
  identity: { url: 'https://api.github.com/user', subject: 'id', label: 'login' },
  api: {
    origins: ['https://api.github.com'],
    headers: { 'x-github-api-version': '2022-11-28' },
    insufficientWhen: [{ status: [403], bodyHas: ['Resource not accessible by'] }],
    limitedWhen: [{ status: [429] }, { status: [403], bodyHas: ['rate limit'] }],
    limit: { resetHeader: 'x-ratelimit-reset', resetAs: 'epoch-seconds' },
    pagination: { kind: 'link-header' },
  },
  sources: [
    'github/docs authorizing-oauth-apps.md, token-expiration-and-revocation.md (2026-11)',
    'github/docs troubleshooting-the-rest-api.md (2026-11)',
    'iss in every response since 2026-04: langfuse/langfuse#13091, nextauthjs/next-auth#13410',
    'PKCE: github.blog changelog 2025-07-14',
  ],
  unverified: ['api.expiredWhen', 'api.headers'],
};

/**
 * GitHub App acting for a person: eight-hour tokens; a refresh ends the old access and refresh token at once.
 */
export const githubApp: ProfileInput = {
  ...github,
  captureFromResponse: ['installation_id'],
  refresh: { rotates: true },
  errors: { dead: ['bad_refresh_token'] },
  sources: [
    'docs.github.com refreshing-user-access-tokens; developer.github.com/changes/2020-04-30 (2026-11)',
    'xorbitsai/xagent#1988: bad_refresh_token with status 200',
  ],
  unverified: ['refresh.graceMs', 'api.expiredWhen', 'api.headers'],
};
