/**
 * Which era a message belongs to (MCP 2026-07-28, basic/versioning, "Terminology"): modern ones carry version and
 * capabilities in every request, legacy ones begin with `initialize`. Pure.
 */
import { isObject, type RpcMessage } from './json-rpc.ts';

/** Revisions of the modern era that are served, newest first. */
export const MODERN_VERSIONS = ['2026-07-28'] as const;

/** Revisions of the legacy era, whose header value alone marks a message as theirs. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

/** `_meta` key under which a modern request names its revision. */
export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

/** Keys of which one is enough to show that a client speaks a modern revision. */
const CLAIMS = [VERSION_KEY, 'io.modelcontextprotocol/clientCapabilities'];

/**
 * Tells the era. Whatever claims to be modern, in the body or by a version header that no legacy revision has, is
 * answered by modern rules, so that it is told what is wrong with it.
 */
export function eraOf(
  message: Exclude<RpcMessage, { kind: 'response' }>,
  headers: { readonly [name: string]: string | string[] | undefined },
): 'modern' | 'legacy' {
  const meta = message.params['_meta'];
  if (isObject(meta) && CLAIMS.some((key) => Object.hasOwn(meta, key))) return 'modern';
  const named = headers['mcp-protocol-version'];
  if (named === undefined) return 'legacy';
  return typeof named === 'string' && (LEGACY_VERSIONS as readonly string[]).includes(named.trim())
    ? 'legacy'
    : 'modern';
}
