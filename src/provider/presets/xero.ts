/** Xero. API requests name the organisation in `xero-tenant-id`, which a job takes from `/connections`. */
import type { ProfileInput } from '../profile.ts';

export const xero: ProfileInput = {
  displayName: 'Xero',
  issuer: 'https://identity.xero.com',
  authorizationEndpoint: 'https://login.xero.com/identity/connect/authorize',
  tokenEndpoint: 'https://identity.xero.com/connect/token',
  clientAuthentication: 'client_secret_basic_raw',
  alwaysScopes: ['offline_access', 'openid'],
  refresh: { rotates: true, graceMs: 1_800_000 },
  revocation: { endpoint: 'https://identity.xero.com/connect/revocation', token: 'refresh', ends: 'grant' },
  identity: { url: 'https://identity.xero.com/connect/userinfo', subject: 'sub', label: 'email' },
  api: {
    origins: ['https://api.xero.com'],
    headers: { accept: 'application/json' },
  },
  sources: ['XeroAPI/xero-node (2026-08); developer.xero.com/faq/oauth2, faq/limits (2026-11)'],
  unverified: ['revocation', 'identity', 'api.insufficientWhen'],
};
