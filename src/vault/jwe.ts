/**
 * One encrypted message as a compact JWE (RFC 7516) with `alg: dir` and `enc: A256GCM`, nothing else accepted.
 *
 * Stricter than the RFC in one point: every part must be in its only canonical base64url form. Otherwise the unused
 * last bits of a part could be flipped and the message would still open.
 */
import { flattenedDecrypt, FlattenedEncrypt } from 'jose';
import type { webcrypto } from 'node:crypto';

/** Protected header parameters besides `alg` and `enc`. */
export type ProtectedHeader = Readonly<Record<string, string | number>>;

/** Why a message does not open; carries nothing of it. */
export type JweProblem = 'malformed' | 'header' | 'ciphertext';

const ALGORITHMS = { alg: 'dir', enc: 'A256GCM' } as const;

/**
 * Encrypts.
 *
 * @param aad additional authenticated data that does not travel with the message; whoever opens it must have it.
 */
export async function encryptJwe(
  plaintext: Uint8Array,
  key: webcrypto.CryptoKey,
  header: ProtectedHeader,
  aad?: Uint8Array,
): Promise<string> {
  const encrypt = new FlattenedEncrypt(plaintext).setProtectedHeader({ ...header, ...ALGORITHMS });
  if (aad !== undefined) encrypt.setAdditionalAuthenticatedData(aad);
  const jwe = await encrypt.encrypt(key);
  return `${jwe.protected}..${jwe.iv}.${jwe.ciphertext}.${jwe.tag}`;
}

/** Reads the protected header, which is **not verified** before `decryptJwe`. Never throws. */
export function peekHeader(text: string): Readonly<Record<string, unknown>> | undefined {
  return partsOf(text)?.header;
}

/**
 * Decrypts, if the protected header is exactly the expected one.
 *
 * Order of checks: shape and canonical form, header, then the authentication tag.
 *
 * @param expected every parameter besides `alg` and `enc`; a missing, different or further one is refused.
 */
export async function decryptJwe(
  text: string,
  key: webcrypto.CryptoKey,
  expected: ProtectedHeader,
  aad?: Uint8Array,
): Promise<{ plaintext: Uint8Array } | { problem: JweProblem }> {
  const parts = partsOf(text);
  if (parts === undefined) return { problem: 'malformed' };
  if (!sameHeader(parts.header, { ...expected, ...ALGORITHMS })) return { problem: 'header' };
  const { encoded, iv, ciphertext, tag } = parts;
  const bound = aad === undefined ? {} : { aad: Buffer.from(aad).toString('base64url') };
  try {
    const { plaintext } = await flattenedDecrypt({ protected: encoded, iv, ciphertext, tag, ...bound }, key, {
      keyManagementAlgorithms: ['dir'],
      contentEncryptionAlgorithms: ['A256GCM'],
      maxDecompressedLength: 0,
    });
    return { plaintext };
  } catch {
    return { problem: 'ciphertext' };
  }
}

interface Parts {
  readonly encoded: string;
  readonly header: Readonly<Record<string, unknown>>;
  readonly iv: string;
  readonly ciphertext: string;
  readonly tag: string;
}

function partsOf(text: string): Parts | undefined {
  const parts = text.split('.', 6);
  const [encoded, encryptedKey, iv, ciphertext, tag] = parts;
  if (parts.length !== 5 || encryptedKey !== '') return undefined;
  // Only the ciphertext may be empty: that of an empty plaintext.
  if (!encoded || !iv || ciphertext === undefined || !tag) return undefined;
  if (![encoded, iv, ciphertext, tag].every(isCanonical)) return undefined;
  try {
    const header: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString());
    if (typeof header !== 'object' || header === null || Array.isArray(header)) return undefined;
    return { encoded, header: header as Record<string, unknown>, iv, ciphertext, tag };
  } catch {
    return undefined;
  }
}

function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part;
}

function sameHeader(actual: Readonly<Record<string, unknown>>, expected: ProtectedHeader): boolean {
  const names = Object.keys(expected);
  return (
    Object.keys(actual).length === names.length && names.every((name) => actual[name] === expected[name])
  );
}
