/** Spotify. A refresh token lives six months from the consent and no refresh makes it longer. */
import type { ProfileInput } from '../profile.ts';

export const spotify: ProfileInput = {
  displayName: 'Spotify',
  authorizationEndpoint: 'https://accounts.spotify.com/authorize',
  tokenEndpoint: 'https://accounts.spotify.com/api/token',
  clientAuthentication: 'client_secret_basic_raw',
  consentParameters: { show_dialog: 'true' },
  identity: { url: 'https://api.spotify.com/v1/me', subject: 'id', label: 'display_name' },
  api: {
    origins: ['https://api.spotify.com'],
    insufficientWhen: [{ status: [403], bodyHas: ['Insufficient client scope'] }],
    pagination: { kind: 'url', from: 'next' },
  },
  sources: ['developer.spotify.com refreshing-tokens (2026-11); sonallux/spotify-web-api (2026-08)'],
  unverified: ['consentParameters', 'refresh.rotates', 'api.insufficientWhen', 'api.pagination'],
};
