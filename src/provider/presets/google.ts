/** Google. A person may grant fewer scopes than were asked for; earlier refresh tokens stay good. */
import type { ProfileInput } from '../profile.ts';

export const google: ProfileInput = {
  displayName: 'Google',
  issuer: 'https://accounts.google.com',
  authorizationEndpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
  tokenEndpoint: 'https://oauth2.googleapis.com/token',
  // The identity endpoint wants it.
  alwaysScopes: ['openid'],
  // A refresh token comes only with offline access, and again only with a forced consent.
  authorizationParameters: { access_type: 'offline', include_granted_scopes: 'true' },
  consentParameters: { prompt: 'consent' },
  refresh: { rotates: false },
  revocation: { endpoint: 'https://oauth2.googleapis.com/revoke', ends: 'grant' },
  identity: { url: 'https://openidconnect.googleapis.com/v1/userinfo', subject: 'sub', label: 'email' },
  api: {
    origins: [
      'https://www.googleapis.com',
      'https://gmail.googleapis.com',
      'https://openidconnect.googleapis.com',
    ],
    insufficientWhen: [
      { status: [403], challengeHas: ['insufficient_scope'] },
      { status: [403], bodyHas: ['ACCESS_TOKEN_SCOPE_INSUFFICIENT', 'insufficientPermissions'] },
    ],
    limitedWhen: [
      { status: [429] },
      { status: [403], bodyHas: ['rateLimitExceeded', 'userRateLimitExceeded'] },
    ],
    pagination: { kind: 'cursor', from: 'nextPageToken', parameter: 'pageToken' },
  },
  sources: ['npm arctic 3.7.0, @better-auth/core 1.7.25 (2026-11)'],
  unverified: ['identity', 'responseIssuer', 'api.expiredWhen', 'revocation.ends'],
};
