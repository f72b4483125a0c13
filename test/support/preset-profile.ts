/** A preset's profile as the configuration makes it: tenants filled in, defaults set, checked. */
import { z } from 'zod';
import { PRESETS } from '../../src/provider/presets.ts';
import type { Profile, ProfileInput } from '../../src/provider/profile.ts';
import { providerSettings } from '../../src/provider/settings.ts';

const settings = providerSettings(z.string());

/** Reads settings of a provider. @throws Error listing every problem with its path. */
export function readProfile(value: Record<string, unknown>): Profile {
  const result = settings.safeParse(value);
  if (result.success) return result.data.profile;
  throw new Error(result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'));
}

/** The profile of a preset; a tenant that has no usual value is called `acme`. */
export function presetProfile(preset: string, profile: Partial<ProfileInput> = {}): Profile {
  const wanted = Object.entries(PRESETS[preset]?.tenant ?? {}).filter(([, one]) => one.default === undefined);
  const tenant = Object.fromEntries(wanted.map(([name]) => [name, 'acme']));
  return readProfile({ preset, clientId: 'client-1', clientSecret: 's', tenant, profile });
}

/** A custom profile with nothing but what is needed. */
export function plainProfile(profile: Partial<ProfileInput> = {}): Profile {
  return readProfile({
    clientId: 'client-1',
    clientSecret: 's',
    profile: {
      displayName: 'Plain',
      issuer: 'https://plain.example',
      authorizationEndpoint: 'https://plain.example/authorize',
      tokenEndpoint: 'https://plain.example/token',
      api: { origins: ['https://api.plain.example'] },
      ...profile,
    },
  });
}
