/**
 * Discord. Revoking one token ends every token of the authorization. A spent refresh token:
 * `invalid_request`.
 */
import type { ProfileInput } from '../profile.ts';

export const discord: ProfileInput = {
  displayName: 'Discord',
  issuer: 'https://discord.com',
  authorizationEndpoint: 'https://discord.com/oauth2/authorize',
  tokenEndpoint: 'https://discord.com/api/oauth2/token',
  alwaysScopes: ['identify'],
  consentParameters: { prompt: 'consent' },
  captureFromResponse: ['guild_id'],
  refresh: { rotates: true },
  // Other requests that are wrong have this code as well.
  errors: { dead: [{ code: 'invalid_request', says: 'Invalid "refresh_token"' }] },
  revocation: { endpoint: 'https://discord.com/api/oauth2/token/revoke', ends: 'grant' },
  identity: { url: 'https://discord.com/api/users/@me', subject: 'id', label: 'username' },
  api: {
    origins: ['https://discord.com'],
    insufficientWhen: [{ status: [403], members: { code: ['50001', '50013'] } }],
    limit: { resetHeader: 'x-ratelimit-reset-after', resetAs: 'seconds' },
  },
  sources: ['discord/discord-api-docs (2026-08), #5942; member-gentei/member-gentei#18'],
  unverified: ['pkce'],
};
