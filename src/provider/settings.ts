/**
 * A provider in the configuration: a profile of ours or the operator's own, and the client registered there.
 */
import { z } from 'zod';
import { PRESETS } from './presets.ts';
import { profileProblems, profileSchema, type Profile, type ProfileInput } from './profile.ts';

/** The form of `providers.<name>`, with the configuration's own way of naming secrets. */
export function providerSettings<Source extends z.ZodType>(secretSource: Source) {
  return z
    .strictObject({
      /** Name of a preset; without one, `profile` is the whole. */
      preset: z.string().min(1).optional(),
      profile: z.custom<ProfileInput>((value) => typeof value === 'object' && value !== null).optional(),
      clientId: z.string().min(1).optional(),
      clientSecret: secretSource.optional(),
      /** PKCS #8 key for `private_key_jwt`. */
      clientKey: secretSource.optional(),
      /** Values for `{name}` in a profile's URLs: a tenant, a subdomain. */
      tenant: z.record(z.string(), z.string().regex(/^[\w.-]{1,253}$/)).default({}),
    })
    .transform((value, context) => {
      const problem = (path: string[], message: string) =>
        context.addIssue({ code: 'custom', path, message, input: value });
      const preset = value.preset === undefined ? undefined : PRESETS[value.preset];
      if (value.preset !== undefined && preset === undefined) {
        problem(['preset'], `is not one of ${Object.keys(PRESETS).join(', ')}`);
        return z.NEVER;
      }
      if (preset === undefined && value.profile === undefined) {
        problem([], 'needs a preset, or a profile from defineProvider(…)');
        return z.NEVER;
      }
      const merged = { ...preset, ...value.profile };
      const tenant = { ...value.tenant };
      for (const [name, { hint, default: usual, isLabel }] of Object.entries(merged.tenant ?? {})) {
        if (isLabel === true && tenant[name]?.includes('.') === true) {
          problem(['tenant', name], `must have no dots: ${hint}`);
        }
        if (tenant[name] !== undefined) continue;
        if (usual === undefined) problem(['tenant', name], `is missing: ${hint}`);
        else tenant[name] = usual;
      }
      for (const name of Object.keys(value.tenant)) {
        if (!JSON.stringify(merged).includes(`{${name}}`)) {
          problem(['tenant', name], 'stands nowhere in the profile; check its spelling');
        }
      }
      if (context.issues.length > 0) return z.NEVER;
      const filled = fill(merged, tenant) as ProfileInput;
      const parsed = profileSchema.safeParse(filled);
      if (!parsed.success) {
        for (const issue of parsed.error.issues) {
          problem(['profile', ...issue.path.map(String)], issue.message);
        }
        return z.NEVER;
      }
      const profile: Profile = parsed.data;
      for (const { path, problem: text } of profileProblems(profile)) problem(['profile', path], text);
      if (profile.kind === 'oauth' && value.clientId === undefined) problem(['clientId'], 'is missing');
      const wantsSecret = profile.clientAuthentication.startsWith('client_secret');
      if (profile.kind === 'oauth' && wantsSecret && value.clientSecret === undefined) {
        problem(['clientSecret'], 'is missing: { env: "NAME" } or { file: "path" }');
      }
      if (profile.clientAuthentication === 'private_key_jwt' && value.clientKey === undefined) {
        problem(['clientKey'], 'is missing: { env: "NAME" } or { file: "path" } of a PKCS #8 key');
      }
      return { ...value, profile };
    });
}

/** Fills `{name}` in every text of a profile. */
function fill(value: unknown, tenant: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string')
    return value.replace(/\{(\w+)\}/g, (all, name: string) => tenant[name] ?? all);
  if (Array.isArray(value)) return value.map((item) => fill(item, tenant));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fill(member, tenant)]));
}
