/**
 * Shopify, one host for each shop. The response is signed with the client secret and must name the shop that
 * was asked. No `token_type`; tokens expire and rotate only with `expiring=1`; the API wants a header of its
 * own.
 */
import type { ProfileInput } from '../profile.ts';

export const shopify: ProfileInput = {
  displayName: 'Shopify',
  tenant: { shop: { hint: 'acme for acme.myshopify.com', isLabel: true } },
  authorizationEndpoint: 'https://{shop}.myshopify.com/admin/oauth/authorize',
  tokenEndpoint: 'https://{shop}.myshopify.com/admin/oauth/access_token',
  pkce: 'ignored',
  tokenRequest: 'json',
  scopeSeparator: ',',
  tokenParameters: { expiring: '1' },
  responseParameters: { shop: '{shop}.myshopify.com' },
  responseSignature: 'hmac-sha256-hex',
  refresh: { rotates: true },
  identity: {
    url: 'https://{shop}.myshopify.com/admin/api/2026-10/shop.json',
    subject: 'shop.id',
    label: 'shop.name',
  },
  api: {
    origins: ['https://{shop}.myshopify.com'],
    header: 'x-shopify-access-token',
    scheme: '',
    expiredWhen: [
      { status: [401] },
      { status: [403], bodyHas: ['Non-expiring access tokens are no longer accepted'] },
    ],
    pagination: { kind: 'link-header' },
  },
  sources: [
    'Shopify/shopify-app-js oauth.ts, refresh-token.ts, types.ts (2026-08); shopify.dev changelog 2025-12-10',
    'community.shopify.dev t/32607, t/34525; signature: Shopify/shopify-app-js hmac-validator.ts',
  ],
  unverified: [
    'pkce',
    'identity',
    'api.expiredWhen',
    'refresh.graceMs',
    'api.insufficientWhen',
    'revocation',
  ],
};
