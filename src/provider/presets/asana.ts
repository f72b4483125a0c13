/** Asana. A refresh answer has no refresh token: the old one goes on. Revocation wants the refresh token. */
import type { ProfileInput } from '../profile.ts';

export const asana: ProfileInput = {
  displayName: 'Asana',
  authorizationEndpoint: 'https://app.asana.com/-/oauth_authorize',
  tokenEndpoint: 'https://app.asana.com/-/oauth_token',
  refresh: { sendsRedirectUri: true },
  revocation: { endpoint: 'https://app.asana.com/-/oauth_revoke', token: 'refresh' },
  identity: {
    url: 'https://app.asana.com/api/1.0/users/me',
    subject: 'data.gid',
    label: 'data.email',
  },
  api: {
    origins: ['https://app.asana.com'],
    pagination: { kind: 'cursor', from: 'next_page.offset', parameter: 'offset' },
  },
  sources: [
    'Asana/developer-docs _auth, _errors, _pagination, _rate-limits (2026-08)',
    'getsentry/junior#775',
  ],
  unverified: ['refresh.sendsRedirectUri', 'refresh.rotates', 'api.insufficientWhen'],
};
