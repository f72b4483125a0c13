/**
 * How one provider behaves, as data: endpoints, quirks, signals. A preset is a profile that ships with Keyturn; a
 * custom provider is one that the operator writes (`defineProvider`).
 */
import { z } from 'zod';

const endpoint = z.url({ protocol: /^https?$/ });
const ms = z.int().positive();

/** A condition on an answer of the provider's API. Every part that is given must hold. */
const signal = z.strictObject({
  status: z.array(z.int()).optional(),
  /** Any of these texts occurs in the body. */
  bodyHas: z.array(z.string().min(1)).optional(),
  /** Any of these texts occurs in `WWW-Authenticate`. */
  challengeHas: z.array(z.string().min(1)).optional(),
});

/** A condition on an answer of the provider's API. */
export type Signal = z.output<typeof signal>;

export const profileSchema = z.strictObject({
  displayName: z.string().min(1).max(80),
  /** `oauth`: a sign-in. `credential`: a key that the person types on our own page. */
  kind: z.enum(['oauth', 'credential']).default('oauth'),
  /** Issuer that `iss` of the authorization response must equal (RFC 9207), and of ID tokens. */
  issuer: z.string().min(1).optional(),
  /** Fetch the endpoints from the issuer's metadata (OpenID Connect Discovery, RFC 8414). */
  discovery: z.boolean().default(false),
  authorizationEndpoint: endpoint.optional(),
  tokenEndpoint: endpoint.optional(),
  /** Where refresh tokens are redeemed, if not at the token endpoint. */
  refreshEndpoint: endpoint.optional(),
  parEndpoint: endpoint.optional(),
  jwksUri: endpoint.optional(),
  /** Whether authorization responses carry `iss`: `required` refuses a response without it. */
  responseIssuer: z.enum(['required', 'optional']).default('optional'),
  /** `ignored`: the provider is known to ignore PKCE. It is sent all the same. */
  pkce: z.enum(['supported', 'ignored']).default('supported'),
  oidc: z.boolean().default(false),
  clientAuthentication: z
    .enum(['client_secret_post', 'client_secret_basic', 'client_secret_basic_raw', 'private_key_jwt', 'none'])
    .default('client_secret_post'),
  tokenRequest: z.enum(['form', 'json']).default('form'),
  scopeSeparator: z.enum([' ', ',']).default(' '),
  scopeParameter: z.string().min(1).default('scope'),
  /** Words for scopes, shown beside their names. */
  scopeWords: z.record(z.string(), z.string()).default({}),
  authorizationParameters: z.record(z.string(), z.string()).default({}),
  /** Added when the person must be asked again. */
  consentParameters: z.record(z.string(), z.string()).default({}),
  tokenParameters: z.record(z.string(), z.string()).default({}),
  /** RFC 8707. */
  resource: z.string().optional(),
  /** Parameters of the authorization response, and members of the token answer, that are kept (`realmId`). */
  capture: z.array(z.string().min(1)).default([]),
  answer: z
    .strictObject({
      /** Member that holds the token set (`authed_user`). Nothing else is ever fallen back to. */
      within: z.string().optional(),
      /** Member that says with `false` that a 200 is an error. */
      okMember: z.string().optional(),
    })
    .prefault({}),
  refresh: z
    .strictObject({
      /** Whether a use replaces the refresh token. Unknown counts as yes. */
      rotates: z.boolean().optional(),
      /** How long a used refresh token is still taken, if the answer was lost. */
      graceMs: ms.optional(),
      parameters: z.record(z.string(), z.string()).default({}),
    })
    .prefault({}),
  errors: z
    .strictObject({
      /** Error codes that mean a dead grant, beside `invalid_grant`. */
      dead: z.array(z.string().min(1)).default([]),
      /** Error codes that pass. */
      transient: z.array(z.string().min(1)).default([]),
    })
    .prefault({}),
  revocation: z
    .strictObject({
      endpoint,
      kind: z.enum(['rfc7009', 'bearer-post']).default('rfc7009'),
      /** What it ends: this token alone, or everything the person gave this client (R5). */
      ends: z.enum(['token', 'grant']).default('grant'),
    })
    .optional(),
  identity: z
    .strictObject({
      url: endpoint,
      method: z.enum(['GET', 'POST']).default('GET'),
      /** Path to the immutable account id: `data.id`. */
      subject: z.string().min(1),
      label: z.string().min(1).optional(),
    })
    .optional(),
  api: z.strictObject({
    /** Exact origins that a token may be sent to (R16). `{name}` is filled from captured values. */
    origins: z.array(z.string().min(1)).min(1),
    scheme: z.string().min(1).default('Bearer'),
    header: z.string().min(1).default('authorization'),
    headers: z.record(z.string(), z.string()).default({}),
    expiredWhen: z.array(signal).default([{ status: [401] }]),
    insufficientWhen: z.array(signal).default([{ status: [403], challengeHas: ['insufficient_scope'] }]),
    limitedWhen: z.array(signal).default([{ status: [429] }]),
  }),
  /** Fields of the form, for the kind `credential`. The one named `key` is sent as the token. */
  credential: z
    .strictObject({
      fields: z
        .array(
          z.strictObject({
            name: z.string().regex(/^[\w-]{1,64}$/),
            label: z.string().min(1),
            kind: z.enum(['secret', 'text']).default('secret'),
            hint: z.string().optional(),
            isOptional: z.boolean().optional(),
            maxLength: z.int().positive().max(65_536).default(4_096),
          }),
        )
        .min(1),
      helpUrl: endpoint.optional(),
    })
    .optional(),
  /** Where the facts come from, each with the day it was looked up. */
  sources: z.array(z.string()).default([]),
});

/** A provider's profile as it is written. */
export type ProfileInput = z.input<typeof profileSchema>;

/** A provider's profile, defaults filled in. */
export type Profile = z.output<typeof profileSchema>;

/** Types a custom provider's profile; checking happens with the configuration. */
export function defineProvider(profile: ProfileInput): ProfileInput {
  return profile;
}

/** What is missing in a profile as a whole, each with its path. */
export function profileProblems(profile: Profile): { path: string; problem: string }[] {
  const problems: { path: string; problem: string }[] = [];
  const missing = (path: string, why: string) => problems.push({ path, problem: `is missing: ${why}` });
  if (profile.kind === 'credential') {
    if (profile.credential === undefined) missing('credential', 'the kind "credential" needs its fields');
    return problems;
  }
  if (profile.discovery) {
    if (profile.issuer === undefined) missing('issuer', 'discovery needs it');
    return problems;
  }
  if (profile.authorizationEndpoint === undefined) missing('authorizationEndpoint', 'or set discovery');
  if (profile.tokenEndpoint === undefined) missing('tokenEndpoint', 'or set discovery');
  return problems;
}
