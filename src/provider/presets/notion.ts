/** Notion. No scopes: the person picks pages. No `expires_in`; `refresh_token` may be null. Ignores PKCE. */
import type { ProfileInput } from '../profile.ts';

export const notion: ProfileInput = {
  displayName: 'Notion',
  authorizationEndpoint: 'https://api.notion.com/v1/oauth/authorize',
  tokenEndpoint: 'https://api.notion.com/v1/oauth/token',
  pkce: 'ignored',
  // The client id is a UUID: its hyphens must not be escaped.
  clientAuthentication: 'client_secret_basic_raw',
  tokenRequest: 'json',
  authorizationParameters: { owner: 'user' },
  capture: ['workspace_id', 'bot_id'],
  refresh: { rotates: true },
  revocation: { endpoint: 'https://api.notion.com/v1/oauth/revoke', kind: 'json', token: 'access' },
  identity: {
    url: 'https://api.notion.com/v1/users/me',
    subject: 'bot.owner.user.id',
    label: 'bot.owner.user.name',
  },
  api: {
    origins: ['https://api.notion.com'],
    headers: { 'notion-version': '2022-06-28' },
    insufficientWhen: [{ status: [403], members: { code: ['restricted_resource'] } }],
    limitedWhen: [{ status: [429, 529] }],
    pagination: { kind: 'cursor', from: 'next_cursor', parameter: 'start_cursor', more: 'has_more' },
  },
  sources: [
    'makenotion/notion-sdk-js src/api-endpoints/oauth.ts, src/errors.ts (2026-08)',
    'vm0-ai/vm0#2723',
  ],
  unverified: [
    'pkce',
    'api.insufficientWhen',
    'api.headers',
    'refresh.graceMs',
    'revocation.ends',
    'revocation.token',
  ],
};
