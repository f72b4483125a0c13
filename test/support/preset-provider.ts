/**
 * A provider of a preset with nock as its network. The address rules do not hold then (they are proved on real
 * sockets); everything else is the real client.
 */
import { openProvider, type Provider } from '../../src/provider/client.ts';
import { openEgress, type Egress } from '../../src/provider/egress.ts';
import type { Profile } from '../../src/provider/profile.ts';
import { secret } from '../../src/secret.ts';

/** Midnight of 1 December 2026, UTC. */
export const NOW = 1_796_083_200_000;

export const REDIRECT_URI = 'https://keyturn.example/callback/one';

export const CLIENT_ID = 'client-id-0001';
export const CLIENT_SECRET = 'canary-client-secret/+~0002';

export function openReplayed(profile: Profile): { provider: Provider; egress: Egress } {
  const egress = openEgress({
    allowPrivate: [],
    timeoutMs: 5_000,
    maxBodyBytes: 100_000,
    send: (url, init) => globalThis.fetch(url, init),
  });
  const provider = openProvider(
    { id: 'one', profile, clientId: CLIENT_ID, clientSecret: secret(CLIENT_SECRET), clientKey: null },
    { egress, wallMs: () => NOW, redirectUri: REDIRECT_URI },
  );
  return { provider, egress };
}
