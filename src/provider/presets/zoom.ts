/**
 * Zoom. Scopes are set on the app; a missing one answers 400. A used refresh token gives "Invalid Token!".
 */
import type { ProfileInput } from '../profile.ts';

export const zoom: ProfileInput = {
  displayName: 'Zoom',
  authorizationEndpoint: 'https://zoom.us/oauth/authorize',
  tokenEndpoint: 'https://zoom.us/oauth/token',
  clientAuthentication: 'client_secret_basic_raw',
  refresh: { rotates: true },
  errors: { dead: [{ code: 'invalid_request', says: 'Invalid Token' }] },
  revocation: { endpoint: 'https://zoom.us/oauth/revoke', token: 'access' },
  identity: { url: 'https://api.zoom.us/v2/users/me', subject: 'id', label: 'email' },
  api: {
    origins: ['https://api.zoom.us'],
    insufficientWhen: [
      { status: [400], members: { code: ['4700', '4711'] } },
      { status: [400], bodyHas: ['does not contain scopes'] },
    ],
    pagination: { kind: 'cursor', from: 'next_page_token', parameter: 'next_page_token' },
  },
  sources: [
    'devsupport.zoom.us 360060332931; developers.zoom.us/docs/api/errors.md (2026-11)',
    'devforum.zoom.us 95559, 114327 (2026-11)',
    'npm arctic 3.7.0',
  ],
  unverified: ['errors.dead', 'api.insufficientWhen', 'revocation.ends'],
};
