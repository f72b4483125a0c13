/**
 * Slack, acting as the person (user token). Every answer has status 200; `ok` tells. A code exchange nests
 * the user's token in `authed_user`, beside a bot token that is never taken instead; a refresh puts it at the
 * top.
 */
import type { ProfileInput } from '../profile.ts';

export const slack: ProfileInput = {
  displayName: 'Slack',
  authorizationEndpoint: 'https://slack.com/oauth/v2/authorize',
  tokenEndpoint: 'https://slack.com/api/oauth.v2.access',
  scopeParameter: 'user_scope',
  scopeSeparator: ',',
  capture: ['team.id'],
  answer: { within: 'authed_user', refreshWithin: null, tokenType: 'user', okMember: 'ok' },
  refresh: { rotates: true },
  errors: { dead: ['invalid_refresh_token', 'token_revoked', 'token_expired'] },
  revocation: { endpoint: 'https://slack.com/api/auth.revoke', kind: 'bearer', token: 'access' },
  identity: { url: 'https://slack.com/api/auth.test', subject: ['team_id', 'user_id'], label: 'user' },
  api: {
    origins: ['https://slack.com'],
    expiredWhen: [
      { status: [401] },
      {
        members: {
          ok: ['false'],
          error: ['token_expired', 'token_revoked', 'invalid_auth', 'account_inactive', 'not_authed'],
        },
      },
    ],
    insufficientWhen: [{ members: { ok: ['false'], error: ['missing_scope'] } }],
    neededScopes: 'needed',
    limitedWhen: [{ status: [429] }, { members: { ok: ['false'], error: ['ratelimited'] } }],
    pagination: { kind: 'cursor', from: 'response_metadata.next_cursor', parameter: 'cursor' },
  },
  sources: [
    'slackapi/slack-api-specs; slackapi/node-slack-sdk (2026-08); api.slack.com/authentication/rotation',
    'docs.slack.dev/changelog/2026/03/30/pkce: turning PKCE on in the app makes it a public client for good',
  ],
  unverified: ['api.insufficientWhen', 'refresh.graceMs', 'revocation.ends'],
};
