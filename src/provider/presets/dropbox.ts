/** Dropbox. Revocation takes the access token as its own proof and ends the whole grant. */
import type { ProfileInput } from '../profile.ts';

export const dropbox: ProfileInput = {
  displayName: 'Dropbox',
  authorizationEndpoint: 'https://www.dropbox.com/oauth2/authorize',
  tokenEndpoint: 'https://api.dropboxapi.com/oauth2/token',
  alwaysScopes: ['account_info.read'],
  authorizationParameters: { token_access_type: 'offline' },
  consentParameters: { force_reapprove: 'true' },
  capture: ['account_id'],
  refresh: { rotates: false },
  revocation: {
    endpoint: 'https://api.dropboxapi.com/2/auth/token/revoke',
    kind: 'bearer',
    token: 'access',
    ends: 'grant',
  },
  identity: {
    url: 'https://api.dropboxapi.com/2/users/get_current_account',
    method: 'POST',
    subject: 'account_id',
    label: 'email',
  },
  api: {
    origins: ['https://api.dropboxapi.com', 'https://content.dropboxapi.com'],
    // Status 401 as well: judged before "expired".
    insufficientWhen: [{ status: [401], members: { 'error..tag': ['missing_scope'] } }],
    neededScopes: 'error.required_scope',
  },
  sources: ['dropbox/dropbox-sdk-js src/auth.js; dropbox/dropbox-api-spec auth.stone (2026-08)'],
  unverified: ['api.expiredWhen', 'alwaysScopes', 'consentParameters', 'api.insufficientWhen'],
};
