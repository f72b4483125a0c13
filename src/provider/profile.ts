/**
 * How one provider behaves, as data: endpoints, quirks, signals. A preset is a profile that ships with
 * Keyturn; a custom provider is one that the operator writes (`defineProvider`).
 */
import { z } from 'zod';

const endpoint = z.url({ protocol: /^https?$/ });
/** An endpoint that may lie on an origin of the connection: `{instance_url}/me`. */
const connectionEndpoint = z.union([endpoint, z.string().regex(/^\{\w+\}\//)]);
const ms = z.int().positive();
/** A path into an answer: `team.id`, `0.errorCode`. */
const path = z.string().min(1);

/** A condition on an answer of the provider's API. Every part that is given must hold. */
const signal = z.strictObject({
  status: z.array(z.int()).optional(),
  /** Any of these texts occurs in the first 4 KiB of the body. */
  bodyHas: z.array(z.string().min(1)).optional(),
  /** Members of a JSON body, by path, that have one of these values as text: `{ ok: ['false'] }`. */
  members: z.record(path, z.array(z.string()).min(1)).optional(),
  /** Any of these texts occurs in `WWW-Authenticate`. */
  challengeHas: z.array(z.string().min(1)).optional(),
});

/** A condition on an answer of the provider's API. */
export type Signal = z.output<typeof signal>;

/** An error of a refresh that means a dead grant. */
const deadGrant = z.union([
  /** An error code that means nothing else. */
  z.string().min(1),
  /**
   * A code that other errors have as well, so that it counts with this status and these words only: a grant
   * that is condemned by mistake costs every person a sign-in.
   */
  z.strictObject({
    code: z.string().min(1),
    status: z.int().optional(),
    /** Occurs in `error_description`, `message` or `reason`. */
    says: z.string().min(1).optional(),
  }),
]);

/** How the next page of a list is found. */
const pagination = z.discriminatedUnion('kind', [
  /** `Link` header with `rel="next"` (RFC 8288). */
  z.strictObject({ kind: z.literal('link-header') }),
  /** A member holds the whole URL, or a path on the same origin. */
  z.strictObject({ kind: z.literal('url'), from: path }),
  /** A member holds a cursor, which is sent as a parameter of the same URL. */
  z.strictObject({
    kind: z.literal('cursor'),
    from: path,
    parameter: z.string().min(1),
    /** Member that says with `false` that this was the last page. */
    more: path.optional(),
  }),
  /** The page is a number that is counted up, until a page comes short: `page=2`, or `offset=100`. */
  z.strictObject({
    kind: z.literal('number'),
    parameter: z.string().min(1),
    /** Of the first page. */
    first: z.int().nonnegative(),
    /** What the number grows by: 1 for pages, the page's size for offsets. */
    step: z.int().positive(),
    /** Items of a full page. */
    size: z.int().positive(),
    /** Member that holds the list; the body itself when left out. */
    items: path.optional(),
  }),
  /** The id of the page's last item is sent as a parameter of the same URL. */
  z.strictObject({
    kind: z.literal('last-item'),
    /** Member that holds the list. */
    items: path,
    id: path,
    parameter: z.string().min(1),
    /** Member that says with `true` that there is another page. */
    more: path,
  }),
]);

/** How the next page of a list is found. */
export type Pagination = z.output<typeof pagination>;

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
  /** Asked for besides what a job needs: a refresh token, or the right to ask whose account it is. */
  alwaysScopes: z.array(z.string().min(1)).default([]),
  /** Words for scopes, shown beside their names. */
  scopeWords: z.record(z.string(), z.string()).default({}),
  authorizationParameters: z.record(z.string(), z.string()).default({}),
  /** Added when the person must be asked again. */
  consentParameters: z.record(z.string(), z.string()).default({}),
  tokenParameters: z.record(z.string(), z.string()).default({}),
  /** RFC 8707. */
  resource: z.string().optional(),
  /**
   * Values for `{name}` in this profile that the operator sets, because each tenant has URLs of its own
   * (R16).
   */
  tenant: z
    .record(
      z.string().regex(/^\w+$/),
      z.strictObject({
        /** What to write, with an example. */
        hint: z.string().min(1),
        default: z.string().optional(),
        /** One label of a host, without dots: `acme`, not `acme.example.com`. */
        isLabel: z.boolean().optional(),
      }),
    )
    .default({}),
  /**
   * Members of the token answer that are kept, by path (`instance_url`, `team.id`). They may name API
   * origins.
   */
  capture: z.array(path).default([]),
  /**
   * Parameters of the authorization response that are kept (`realmId`). A browser brought them: never an
   * origin.
   */
  captureFromResponse: z.array(z.string().min(1)).default([]),
  /** Parameters of the authorization response that must have exactly this value (R16). */
  responseParameters: z.record(z.string(), z.string()).default({}),
  /** Authorization responses with a code are signed under the client secret (`response-signature.ts`). */
  responseSignature: z.enum(['hmac-sha256-hex']).optional(),
  answer: z
    .strictObject({
      /**
       * Member that holds the token set of a code exchange (`authed_user`). Nothing else is ever fallen back
       * to.
       */
      within: z.string().optional(),
      /** Member that holds it after a refresh, where that is another place; `null` is the answer itself. */
      refreshWithin: z.string().nullable().optional(),
      /**
       * `token_type` that an answer must carry where it carries one: tells `user` tokens from `bot` tokens.
       */
      tokenType: z.string().optional(),
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
      /** Whether a refresh names the redirect URI of the sign-in as well. */
      sendsRedirectUri: z.boolean().default(false),
      parameters: z.record(z.string(), z.string()).default({}),
    })
    .prefault({}),
  errors: z
    .strictObject({
      /** Error codes of a refresh that mean a dead grant, beside `invalid_grant`. */
      dead: z.array(deadGrant).default([]),
      /** Error codes that say that our client is not as the provider has it, beside the common ones. */
      misconfigured: z.array(z.string().min(1)).default([]),
      /** Error codes that pass. */
      transient: z.array(z.string().min(1)).default([]),
    })
    .prefault({}),
  revocation: z
    .strictObject({
      endpoint: connectionEndpoint,
      /**
       * `rfc7009`: form with client authentication. `bearer`: the access token authenticates its own end.
       * `json`: a JSON body, client authentication by `Authorization: Basic`.
       */
      kind: z.enum(['rfc7009', 'bearer', 'json']).default('rfc7009'),
      method: z.enum(['POST', 'DELETE']).default('POST'),
      /** Member of the JSON body that holds the token. */
      member: z.string().min(1).default('token'),
      /** Which token is named. */
      token: z.enum(['refresh', 'access']).default('refresh'),
      /** What it ends: this token alone, or everything the person gave this client (R5). */
      ends: z.enum(['token', 'grant']).default('grant'),
    })
    .optional(),
  identity: z
    .union([
      z.strictObject({
        url: connectionEndpoint,
        method: z.enum(['GET', 'POST']).default('GET'),
        /** JSON text, for APIs that are asked by a body. */
        body: z.string().optional(),
        /**
         * Path to the immutable account id: `data.id`. Several are joined: an id that is unique in its team
         * only.
         */
        subject: z.union([path, z.array(path).min(1)]),
        label: path.optional(),
      }),
      /**
       * Values that the token answer brought, by their captured names; the probe shows that the token still
       * lives.
       */
      z.strictObject({
        captured: z.array(z.string().min(1)).min(1),
        label: z.string().min(1).optional(),
        probe: connectionEndpoint,
      }),
    ])
    .optional(),
  api: z.strictObject({
    /** Exact origins that a token may be sent to (R16). `{name}` is a tenant's value or one of `capture`. */
    origins: z.array(z.string().min(1)).min(1),
    /** Word before the token; empty for headers that hold the token alone. */
    scheme: z.string().default('Bearer'),
    header: z.string().min(1).default('authorization'),
    /** HTTP Basic instead, with the token as password and this user: `{email}/token`. */
    basicUser: z.string().optional(),
    headers: z.record(z.string(), z.string()).default({}),
    expiredWhen: z.array(signal).default([{ status: [401] }]),
    /** Member of such an answer that names the missing scopes, where `WWW-Authenticate` does not. */
    neededScopes: path.optional(),
    insufficientWhen: z.array(signal).default([{ status: [403], challengeHas: ['insufficient_scope'] }]),
    limitedWhen: z.array(signal).default([{ status: [429] }]),
    /** How long to wait after a limit, where `Retry-After` does not say. */
    limit: z
      .strictObject({
        resetHeader: z.string().min(1).optional(),
        /** What that header holds. */
        resetAs: z.enum(['epoch-seconds', 'seconds', 'date']).default('epoch-seconds'),
        waitMs: ms.optional(),
      })
      .prefault({}),
    pagination: pagination.default({ kind: 'cursor', from: 'next', parameter: 'cursor' }),
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
  /** Fields whose facts come from memory only, or contradict each other: prove them with a real account. */
  unverified: z.array(z.string()).default([]),
});

/** A provider's profile as it is written. */
export type ProfileInput = z.input<typeof profileSchema>;

/** A provider's profile, defaults filled in. */
export type Profile = z.output<typeof profileSchema>;

/** Types a custom provider's profile; checking happens with the configuration. */
export function defineProvider(profile: ProfileInput): ProfileInput {
  return profile;
}

/** What is wrong with a profile as a whole, each with its path. */
export function profileProblems(profile: Profile): { path: string; problem: string }[] {
  const problems: { path: string; problem: string }[] = [];
  const wrong = (where: string, problem: string) => problems.push({ path: where, problem });
  const { credential, identity, api } = profile;
  if (profile.kind === 'oauth') {
    for (const [index, origin] of api.origins.entries()) {
      for (const [, name = ''] of origin.matchAll(/\{(\w+)\}/g)) {
        if (!profile.capture.includes(name)) {
          wrong(`api.origins.${index}`, `{${name}} is neither in tenant nor in capture`);
        }
      }
    }
  }
  if (identity !== undefined && 'captured' in identity) {
    for (const name of identity.captured) {
      if (!profile.capture.includes(name)) wrong('identity.captured', `"${name}" is not in capture`);
    }
  }
  if (profile.kind === 'credential') {
    if (credential === undefined) {
      wrong('credential', 'is missing: the kind "credential" needs its fields');
    } else if (credential.fields.filter((field) => field.kind === 'secret').length !== 1) {
      // What is not the token is kept beside it in the ledger, which holds no secrets.
      wrong('credential.fields', 'needs exactly one field of the kind "secret"');
    }
    return problems;
  }
  if (profile.oidc && profile.issuer === undefined) {
    wrong('issuer', 'is missing: ID tokens are compared with it');
  }
  if (profile.discovery) {
    if (profile.issuer === undefined) wrong('issuer', 'is missing: discovery needs it');
    return problems;
  }
  if (profile.authorizationEndpoint === undefined) {
    wrong('authorizationEndpoint', 'is missing: or set discovery');
  }
  if (profile.tokenEndpoint === undefined) wrong('tokenEndpoint', 'is missing: or set discovery');
  return problems;
}
