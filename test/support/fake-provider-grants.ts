/**
 * What the fake provider has handed out: codes, grants, and tokens with the family rule (a refresh token
 * that is used again ends its grant). Every secret is recognisable and remembered, so that a test can
 * search for it. Pure but for randomness.
 */
import { createHash, randomBytes } from 'node:crypto';

export interface Grant {
  readonly id: number;
  readonly account: string;
  readonly scopes: readonly string[];
  live: boolean;
}

export interface RefreshToken {
  readonly token: string;
  /** Counts all refresh tokens from 1 on, so that logs can tell them apart without showing one. */
  readonly ordinal: number;
  readonly grant: Grant;
  usedAtMs: number | null;
}

interface Code {
  readonly grant: Grant;
  readonly redirectUri: string;
  readonly challenge: string;
  used: boolean;
}

/** Rules that a redemption is held against. */
export interface RefreshRules {
  readonly rotate: boolean;
  readonly graceMs: number;
  readonly nowMs: number;
}

export interface Grants {
  /** Every code, access token and refresh token that was ever made. */
  readonly secrets: readonly string[];
  newCode(
    request: { account: string; scopes: readonly string[]; redirectUri: string; challenge: string },
    awkward: boolean,
  ): string;
  /** The grant behind a code, once; a second time ends it. */
  redeemCode(code: string, redirectUri: string, verifier: string): Grant | undefined;
  newAccessToken(grant: Grant, how: { untilMs: number; length: number; account: string }): string;
  newRefreshToken(grant: Grant, length: number): RefreshToken;
  /** Any refresh token that was ever made. */
  findRefreshToken(token: string): RefreshToken | undefined;
  /** The grant to issue new tokens for; undefined, and the family ended, where the token was used before. */
  redeemRefreshToken(token: RefreshToken, rules: RefreshRules): Grant | undefined;
  /** Whose access token this is, if it lives, and what it may do. */
  holderOf(accessToken: string, nowMs: number): { id: string; scopes: readonly string[] } | undefined;
  /** Ends one token; a refresh token takes its grant along (RFC 7009, section 2.1). */
  revoke(token: string): void;
  expireAccessTokens(): void;
  endGrants(): void;
}

export function openGrants(): Grants {
  const secrets: string[] = [];
  const codes = new Map<string, Code>();
  const accessTokens = new Map<string, { grant: Grant; untilMs: number; account: string }>();
  const refreshTokens = new Map<string, RefreshToken>();
  const grants: Grant[] = [];

  function mint(kind: 'code' | 'at' | 'rt', length = 0, tail = ''): string {
    const text = `fake-${kind}-${randomBytes(18).toString('base64url')}`.padEnd(length, 'x') + tail;
    secrets.push(text);
    return text;
  }

  return {
    secrets,
    newCode({ account, scopes, redirectUri, challenge }, awkward) {
      const grant: Grant = { id: grants.length + 1, account, scopes, live: true };
      grants.push(grant);
      const code = mint('code', 0, awkward ? '/a+b%2Fc%20d=' : '');
      codes.set(code, { grant, redirectUri, challenge, used: false });
      return code;
    },
    redeemCode(text, redirectUri, verifier) {
      const code = codes.get(text);
      if (code === undefined) return undefined;
      if (code.used) code.grant.live = false;
      const challenge = createHash('sha256').update(verifier).digest('base64url');
      if (!code.grant.live || code.redirectUri !== redirectUri || code.challenge !== challenge)
        return undefined;
      code.used = true;
      return code.grant;
    },
    newAccessToken(grant, { untilMs, length, account }) {
      const token = mint('at', length);
      accessTokens.set(token, { grant, untilMs, account });
      return token;
    },
    newRefreshToken(grant, length) {
      const token = mint('rt', length);
      const made = { token, ordinal: refreshTokens.size + 1, grant, usedAtMs: null };
      refreshTokens.set(token, made);
      return made;
    },
    findRefreshToken: (token) => refreshTokens.get(token),
    redeemRefreshToken(token, { rotate, graceMs, nowMs }) {
      const { grant } = token;
      if (!grant.live) return undefined;
      if (!rotate) return grant;
      if (token.usedAtMs !== null && nowMs - token.usedAtMs >= graceMs) {
        grant.live = false;
        return undefined;
      }
      token.usedAtMs ??= nowMs;
      return grant;
    },
    holderOf(accessToken, nowMs) {
      const held = accessTokens.get(accessToken);
      if (held === undefined || !held.grant.live || nowMs >= held.untilMs) return undefined;
      return { id: held.account, scopes: held.grant.scopes };
    },
    revoke(token) {
      accessTokens.delete(token);
      const refreshToken = refreshTokens.get(token);
      if (refreshToken !== undefined) refreshToken.grant.live = false;
    },
    expireAccessTokens: () => accessTokens.clear(),
    endGrants() {
      for (const grant of grants) grant.live = false;
    },
  };
}
