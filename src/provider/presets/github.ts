/** GitHub: OAuth apps and GitHub Apps. */
import type { ProfileInput } from '../profile.ts';

/** OAuth app: tokens without an end, no refresh tokens. */
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
  identity: { url: 'https://api.github.com/user', subject: 'id', label: 'login' },
  api: {
    origins: ['https://api.github.com'],
    headers: { 'x-github-api-version': '2022-11-28' },
    expiredWhen: [{ status: [401] }],
    insufficientWhen: [{ status: [403], bodyHas: ['Resource not accessible by'] }],
    limitedWhen: [{ status: [429] }, { status: [403], bodyHas: ['rate limit'] }],
  },
  sources: [
    'github/docs authorizing-oauth-apps.md, token-expiration-and-revocation.md (2026-11)',
    'iss in every response since 2026-04: langfuse/langfuse#13091, nextauthjs/next-auth#13410',
  ],
};

/** GitHub App acting for a person: eight-hour tokens, rotating refresh tokens. */
export const githubApp: ProfileInput = {
  ...github,
  displayName: 'GitHub',
  capture: ['installation_id'],
  refresh: { rotates: true },
  errors: { dead: ['bad_refresh_token'] },
  sources: ['docs.github.com refreshing-user-access-tokens (2026-11)'],
};
