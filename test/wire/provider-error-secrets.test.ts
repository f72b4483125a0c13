/** Errors of a refresh, looked at as deeply as a debugger would: no token, no client secret, no text of the provider. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEgress, type Egress } from '../../src/provider/egress.ts';
import { openProvider } from '../../src/provider/client.ts';
import { profileSchema } from '../../src/provider/profile.ts';
import { secret } from '../../src/secret.ts';
import { openFakeProvider, type FakeProvider } from '../support/fake-provider.ts';
import type { TokenReply } from '../support/fake-provider-switches.ts';

const ACCESS = 'at-very-secret-access';
const REFRESH = 'rt-very-secret-refresh';
const WORDS = 'PROVIDER-WORDS';

let fake: FakeProvider;
let egress: Egress;

beforeAll(async () => {
  fake = await openFakeProvider();
  egress = openEgress({ allowPrivate: [fake.origin], timeoutMs: 5_000, maxBodyBytes: 10_000 });
});

afterAll(async () => {
  await egress.close();
  await fake.close();
});

const echo = `${WORDS} ${REFRESH} ${ACCESS}`;

test.each<[string, TokenReply]>([
  [
    'a dead grant that quotes the token',
    { kind: 'instead', status: 400, body: { error: 'invalid_grant', error_description: echo } },
  ],
  [
    'a refusal of the client',
    { kind: 'instead', status: 401, body: { error: 'invalid_client', error_description: echo } },
  ],
  [
    'an error that is the token',
    { kind: 'instead', status: 400, body: { error: REFRESH, error_description: echo } },
  ],
  ['a page that quotes the request', { kind: 'instead', status: 403, body: `<html>${echo}</html>` }],
  ['an outage that quotes the request', { kind: 'instead', status: 502, body: `<html>${echo}</html>` }],
  [
    'an answer that breaks off',
    { kind: 'instead', status: 200, body: `{"access_token":"${ACCESS}","refresh_token":"${REFRESH}` },
  ],
  [
    'a token with a line break',
    { kind: 'instead', status: 200, body: { access_token: `${ACCESS}\n`, refresh_token: REFRESH } },
  ],
  ['an answer that is too long', { kind: 'instead', status: 200, body: echo.repeat(1_000) }],
  [
    'a redirect with the token',
    { kind: 'instead', status: 302, body: echo, headers: { location: `http://127.0.0.1:9/?t=${ACCESS}` } },
  ],
  ['a reset connection', { kind: 'reset' }],
])('%s shows no secret in its error', async (_, refresh) => {
  fake.set({ refresh });
  const { settings } = fake;
  const provider = openProvider(
    {
      id: 'shelf',
      clientId: settings.clientId,
      clientSecret: settings.clientSecret,
      clientKey: null,
      profile: profileSchema.parse({
        displayName: 'Shelf',
        authorizationEndpoint: settings.authorizationEndpoint,
        tokenEndpoint: settings.tokenEndpoint,
        api: { origins: [fake.origin] },
      }),
    },
    { egress, wallMs: () => Date.now() },
  );
  const tokens = { accessToken: secret(ACCESS), refreshToken: secret(REFRESH), captured: {} };
  const error: unknown = await provider.refresh(tokens, { scopes: [] }).catch((thrown: unknown) => thrown);
  expect(error).toHaveProperty('reason');
  const shown = inspect(error, { depth: Infinity, showHidden: true, getters: true });
  for (const word of [ACCESS, REFRESH, WORDS, settings.clientSecret.reveal()]) {
    expect(shown).not.toContain(word);
    expect(JSON.stringify(error)).not.toContain(word);
  }
});
