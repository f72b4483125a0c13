/** A token set as we keep it: secrets as values that cannot print themselves, the rest as facts. */
import { z } from 'zod';
import { Secret, secret } from '../secret.ts';

export interface TokenSet {
  readonly accessToken: Secret;
  readonly refreshToken?: Secret;
  /** Granted scopes; undefined means as asked (D10). */
  readonly scopes?: readonly string[];
  /** End of the access token, counted from receipt; undefined means unknown (D12). */
  readonly expiresAtMs?: number;
  /** Tenant, base URL and the like, by name. */
  readonly captured: Readonly<Record<string, string>>;
}

/** The token set after a refresh: what the answer leaves out keeps its value (D11). */
export function mergeTokenSet(old: TokenSet, answer: TokenSet): TokenSet {
  const { expiresAtMs: _, ...kept } = old;
  return { ...kept, ...answer, captured: { ...old.captured, ...answer.captured } };
}

const stored = z.strictObject({
  accessToken: z.string().min(1),
  refreshToken: z.string().min(1).optional(),
  scopes: z.array(z.string()).optional(),
  expiresAtMs: z.number().optional(),
  captured: z.record(z.string(), z.string()),
});

/** The text that the vault seals. */
export function printTokenSet(tokens: TokenSet): Secret {
  return secret(
    JSON.stringify({
      ...tokens,
      accessToken: tokens.accessToken.reveal(),
      refreshToken: tokens.refreshToken?.reveal(),
    }),
  );
}

/** Reads what `printTokenSet` wrote. @throws Error without the text, when it is something else. */
export function parseTokenSet(text: Secret): TokenSet {
  let read: z.output<typeof stored>;
  try {
    read = stored.parse(JSON.parse(text.reveal()));
  } catch {
    // The error of a parser may quote what it was given.
    throw new Error('a sealed token set has another shape than this version writes');
  }
  const { accessToken, refreshToken, scopes, expiresAtMs, captured } = read;
  return {
    accessToken: secret(accessToken),
    ...(refreshToken === undefined ? {} : { refreshToken: secret(refreshToken) }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    captured,
  };
}
