/** GitLab, gitlab.com or self-managed. Doorkeeper: a refresh ends the old pair; a concurrent one loses. */
import type { ProfileInput } from '../profile.ts';

export const gitlab: ProfileInput = {
  displayName: 'GitLab',
  tenant: { host: { hint: 'host of the GitLab server, such as gitlab.example.com', default: 'gitlab.com' } },
  issuer: 'https://{host}',
  authorizationEndpoint: 'https://{host}/oauth/authorize',
  tokenEndpoint: 'https://{host}/oauth/token',
  alwaysScopes: ['read_user'],
  refresh: { rotates: true, sendsRedirectUri: true },
  revocation: { endpoint: 'https://{host}/oauth/revoke' },
  identity: { url: 'https://{host}/api/v4/user', subject: 'id', label: 'username' },
  api: {
    origins: ['https://{host}'],
    insufficientWhen: [
      { status: [403], challengeHas: ['insufficient_scope'] },
      { status: [403], members: { error: ['insufficient_scope'] } },
    ],
    neededScopes: 'scope',
    limit: { resetHeader: 'ratelimit-reset', resetAs: 'epoch-seconds' },
    pagination: { kind: 'link-header' },
  },
  sources: ['gitlabhq/gitlabhq doc/api/oauth2.md, doc/api/rest/troubleshooting.md (2026-08)'],
  unverified: ['issuer', 'revocation.ends', 'api.insufficientWhen', 'api.limit', 'api.pagination'],
};
