/** How the fake provider misbehaves: one switch a fault that real providers have shown. */

/** An answer that is given instead of what would have been right. */
export interface Instead {
  readonly status: number;
  /** A record is sent as JSON; a text as it is. */
  readonly body: Readonly<Record<string, unknown>> | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How often, before answers are right again. Default: until it is switched off. */
  readonly times?: number;
}

/** What a token endpoint does with a request of one kind. */
export type TokenReply =
  /** Tokens, wrapped in one way or another. */
  | {
      readonly kind: 'tokens';
      readonly as: 'json' | 'json-with-bom' | 'json-as-text' | 'form';
      readonly status: number;
    }
  /** Nothing is issued, redeemed or rotated. */
  | ({ readonly kind: 'instead' } & Instead)
  /** The connection is cut; nothing is issued, redeemed or rotated. `times` as for `instead`. */
  | { readonly kind: 'reset'; readonly times?: number };

export interface Switches {
  /** A refresh gives a new refresh token, and a used one ends its family. Off: the same one for good. */
  readonly rotate: boolean;
  /** How long a used refresh token still works. */
  readonly graceMs: number;
  readonly exchange: TokenReply;
  readonly refresh: TokenReply;
  /** Time between having done a token request and answering it. For exact moments there are gates. */
  readonly delayMs: number;
  /** Redeems or rotates, then cuts the connection. */
  readonly dropReply: boolean;

  /** Value of `expires_in`, of any type, or `missing`. */
  readonly expiresIn: unknown;
  /** How long access tokens really live. */
  readonly accessTokenMs: number;
  /** Where answers leave the refresh token out. */
  readonly omitRefreshToken: 'never' | 'on-refresh' | 'always';
  /** The granted scopes: those that were asked for, or these. */
  readonly grantedScopes: 'as-asked' | readonly string[];
  readonly omitScope: boolean;
  readonly scopeSeparator: ' ' | ',';
  /** Puts the person's tokens into `authed_user`, alone or beside a bot's token at the top. */
  readonly nested: 'no' | 'authed-user' | 'authed-user-and-bot';
  /** Value of `token_type`, or `missing`. */
  readonly tokenType: string;
  /** Pads access and refresh tokens to this length, in characters. */
  readonly tokenLength: number;

  /** `iss` of the authorization response (RFC 9207). */
  readonly iss: 'right' | 'wrong' | 'missing';
  /** Whether the metadata promises `iss`. */
  readonly issAdvertised: boolean;
  readonly extraCallbackParameters: Readonly<Record<string, string>>;
  /** Codes with characters that suffer from being decoded twice or not at all. */
  readonly awkwardCodes: boolean;
  /** The authorization request ends in this error. */
  readonly authorizeError: { readonly error: string; readonly description?: string } | null;
  /** Sends the browser back with neither a code nor an error. */
  readonly authorizeNothing: boolean;

  /** Who is signed in at the provider. */
  readonly account: string;
  readonly userinfo: Instead | null;
  readonly api: Instead | null;
  /** How far the provider's clock is ahead of ours. */
  readonly clockOffsetMs: number;
}

/** A provider without faults. */
export const FAULTLESS: Switches = {
  rotate: true,
  graceMs: 0,
  exchange: { kind: 'tokens', as: 'json', status: 200 },
  refresh: { kind: 'tokens', as: 'json', status: 200 },
  delayMs: 0,
  dropReply: false,
  expiresIn: 3600,
  accessTokenMs: 3_600_000,
  omitRefreshToken: 'never',
  grantedScopes: 'as-asked',
  omitScope: false,
  scopeSeparator: ' ',
  nested: 'no',
  tokenType: 'Bearer',
  tokenLength: 0,
  iss: 'right',
  issAdvertised: true,
  extraCallbackParameters: {},
  awkwardCodes: false,
  authorizeError: null,
  authorizeNothing: false,
  account: 'account-a',
  userinfo: null,
  api: null,
  clockOffsetMs: 0,
};
