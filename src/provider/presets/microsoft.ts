/** Microsoft Entra ID with Microsoft Graph. A refresh gives a new refresh token; the old one stays good. */
import type { ProfileInput } from '../profile.ts';

export const microsoft: ProfileInput = {
  displayName: 'Microsoft',
  tenant: {
    tenant: { hint: 'directory (tenant) id, or common, organizations, consumers', default: 'common' },
  },
  issuer: 'https://login.microsoftonline.com/{tenant}/v2.0',
  authorizationEndpoint: 'https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize',
  tokenEndpoint: 'https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token',
  // `openid` for the identity endpoint only: with the tenant "common" the ID token's issuer is not known
  // beforehand, so it is not looked at.
  alwaysScopes: ['offline_access', 'openid'],
  authorizationParameters: { response_mode: 'query' },
  consentParameters: { prompt: 'select_account' },
  refresh: { rotates: false },
  identity: { url: 'https://graph.microsoft.com/oidc/userinfo', subject: 'sub', label: 'email' },
  api: {
    origins: ['https://graph.microsoft.com'],
    insufficientWhen: [
      { status: [403], members: { 'error.code': ['accessDenied', 'Authorization_RequestDenied'] } },
      { status: [403], challengeHas: ['insufficient_scope', 'insufficient_claims'] },
    ],
    limitedWhen: [{ status: [429, 503, 509] }],
    pagination: { kind: 'url', from: '@odata.nextLink' },
  },
  sources: [
    'MicrosoftDocs/entra-docs v2-oauth2-auth-code-flow, refresh-tokens (2026-08)',
    'microsoftgraph/microsoft-graph-docs-contrib concepts/errors.md (2026-08)',
  ],
  unverified: ['revocation', 'identity', 'api.expiredWhen', 'api.pagination'],
};
