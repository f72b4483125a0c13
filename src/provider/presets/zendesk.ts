/** Zendesk, one host for each account. A refresh ends the old pair. */
import type { ProfileInput } from '../profile.ts';

export const zendesk: ProfileInput = {
  displayName: 'Zendesk',
  tenant: { subdomain: { hint: 'acme for acme.zendesk.com', isLabel: true } },
  authorizationEndpoint: 'https://{subdomain}.zendesk.com/oauth/authorizations/new',
  tokenEndpoint: 'https://{subdomain}.zendesk.com/oauth/tokens',
  refresh: { rotates: true },
  revocation: {
    endpoint: 'https://{subdomain}.zendesk.com/api/v2/oauth/tokens/current',
    kind: 'bearer',
    method: 'DELETE',
    token: 'access',
  },
  identity: {
    url: 'https://{subdomain}.zendesk.com/api/v2/users/me.json',
    subject: 'user.id',
    label: 'user.email',
  },
  api: {
    origins: ['https://{subdomain}.zendesk.com'],
    pagination: { kind: 'url', from: 'links.next' },
  },
  sources: ['developer.zendesk.com grant_type_tokens; support.zendesk.com 9182123625370 (2026-11)'],
  unverified: ['revocation', 'identity', 'api.expiredWhen', 'api.insufficientWhen', 'refresh.graceMs'],
};
