/** Salesforce. Each org has an API address of its own (`instance_url`); no `expires_in`; errors are lists. */
import type { ProfileInput } from '../profile.ts';

export const salesforce: ProfileInput = {
  displayName: 'Salesforce',
  tenant: {
    domain: {
      hint: 'login host: login.salesforce.com, test.salesforce.com or a My Domain host',
      default: 'login.salesforce.com',
    },
  },
  issuer: 'https://{domain}',
  authorizationEndpoint: 'https://{domain}/services/oauth2/authorize',
  tokenEndpoint: 'https://{domain}/services/oauth2/token',
  alwaysScopes: ['refresh_token', 'openid'],
  consentParameters: { prompt: 'consent' },
  capture: ['instance_url'],
  revocation: { endpoint: 'https://{domain}/services/oauth2/revoke' },
  identity: {
    url: '{instance_url}/services/oauth2/userinfo',
    subject: 'user_id',
    label: 'preferred_username',
  },
  api: {
    origins: ['{instance_url}'],
    insufficientWhen: [],
    limitedWhen: [
      { status: [429] },
      { status: [403], members: { '0.errorCode': ['REQUEST_LIMIT_EXCEEDED'] } },
    ],
    pagination: { kind: 'url', from: 'nextRecordsUrl' },
  },
  sources: ['developer.salesforce.com 198.0, 218.0, 256.0 (2026-11)', 'npm arctic 3.7.0, grant 5.4.24'],
  unverified: ['issuer', 'pkce', 'refresh.rotates', 'identity', 'api.limitedWhen', 'api.pagination'],
};
