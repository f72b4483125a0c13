/** Airtable. Strict: a refresh token that is used twice may cost the whole integration. Wants PKCE. */
import type { ProfileInput } from '../profile.ts';

export const airtable: ProfileInput = {
  displayName: 'Airtable',
  authorizationEndpoint: 'https://airtable.com/oauth2/v1/authorize',
  tokenEndpoint: 'https://airtable.com/oauth2/v1/token',
  // The client id is a UUID: its hyphens must not be escaped.
  clientAuthentication: 'client_secret_basic_raw',
  refresh: { rotates: true },
  identity: { url: 'https://api.airtable.com/v0/meta/whoami', subject: 'id', label: 'email' },
  api: {
    origins: ['https://api.airtable.com'],
    insufficientWhen: [{ status: [403], bodyHas: ['NOT_AUTHORIZED', 'INVALID_PERMISSIONS'] }],
    limit: { waitMs: 30_000 },
    pagination: { kind: 'cursor', from: 'offset', parameter: 'offset' },
  },
  sources: ['Airtable/oauth-example; Airtable/airtable.js src/base.ts, src/query.ts (2026-08)'],
  unverified: ['pkce', 'identity', 'api.limit', 'refresh.graceMs', 'revocation'],
};
