/**
 * Stripe Connect (Standard accounts). The client secret is the platform's secret key; tokens do not expire;
 * access is ended by account, not by token, so not from here.
 */
import type { ProfileInput } from '../profile.ts';

export const stripe: ProfileInput = {
  displayName: 'Stripe',
  authorizationEndpoint: 'https://connect.stripe.com/oauth/authorize',
  tokenEndpoint: 'https://connect.stripe.com/oauth/token',
  consentParameters: { always_prompt: 'true' },
  capture: ['stripe_user_id'],
  identity: { url: 'https://api.stripe.com/v1/account', subject: 'id', label: 'email' },
  api: {
    origins: ['https://api.stripe.com'],
    insufficientWhen: [],
    limitedWhen: [{ status: [429] }, { status: [400], members: { 'error.code': ['rate_limit'] } }],
    pagination: {
      kind: 'last-item',
      items: 'data',
      id: 'id',
      parameter: 'starting_after',
      more: 'has_more',
    },
  },
  sources: ['stripe/stripe-node OAuth.ts, src/Error.ts, src/RequestSender.ts (2026-08)'],
  unverified: [
    'api.pagination',
    'identity',
    'pkce',
    'refresh.rotates',
    'api.expiredWhen',
    'clientAuthentication',
  ],
};
