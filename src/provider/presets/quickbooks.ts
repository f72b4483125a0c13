/**
 * QuickBooks Online (Intuit). Every API address names the company (`{realmId}`), which the response brings.
 */
import type { ProfileInput } from '../profile.ts';

export const quickbooks: ProfileInput = {
  displayName: 'QuickBooks',
  issuer: 'https://oauth.platform.intuit.com/op/v1',
  authorizationEndpoint: 'https://appcenter.intuit.com/connect/oauth2',
  tokenEndpoint: 'https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer',
  clientAuthentication: 'client_secret_basic_raw',
  // The identity endpoint wants it.
  alwaysScopes: ['openid'],
  captureFromResponse: ['realmId'],
  refresh: { rotates: true, graceMs: 86_400_000 },
  revocation: {
    endpoint: 'https://developer.api.intuit.com/v2/oauth2/tokens/revoke',
    kind: 'json',
    token: 'refresh',
  },
  identity: {
    url: 'https://accounts.platform.intuit.com/v1/openid_connect/userinfo',
    subject: 'sub',
    label: 'email',
  },
  api: {
    origins: ['https://quickbooks.api.intuit.com', 'https://sandbox-quickbooks.api.intuit.com'],
    headers: { accept: 'application/json' },
    expiredWhen: [{ status: [401] }, { status: [200], members: { 'Fault.Error.0.code': ['3200'] } }],
    insufficientWhen: [{ status: [403], bodyHas: ['003100'] }],
    limit: { waitMs: 60_000 },
  },
  sources: ['intuit/oauth-jsclient README, src/OAuthClient.js (2026-08); blogs.a.intuit.com 2025-11'],
  unverified: ['pkce', 'api.expiredWhen', 'api.insufficientWhen', 'revocation.ends'],
};
