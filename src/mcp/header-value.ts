/**
 * Values of `Mcp-Name` and `Mcp-Param-*` (MCP 2026-07-28, transports/streamable-http, "Value Encoding"): plain ASCII, or
 * UTF-8 as Base64 between the marks `=?base64?` and `?=`. Pure.
 */

const OPEN = '=?base64?';
const CLOSE = '?=';
/** Visible ASCII, space and tab. */
const PLAIN = /^[\t\x20-\x7e]*$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes a header value, or undefined when it holds characters or an encoding that are not allowed. */
export function decodeHeaderValue(raw: string): string | undefined {
  const value = raw.replace(/^[\t ]+|[\t ]+$/g, '');
  if (!PLAIN.test(value)) return undefined;
  if (!value.startsWith(OPEN) || !value.endsWith(CLOSE) || value.length < OPEN.length + CLOSE.length) {
    return value;
  }
  const encoded = value.slice(OPEN.length, -CLOSE.length);
  if (!BASE64.test(encoded)) return undefined;
  try {
    return utf8.decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}

/** Encodes a text as a header value: as it is where that is safe, else as Base64. */
export function encodeHeaderValue(text: string): string {
  const safe =
    PLAIN.test(text) &&
    text === text.trim() &&
    text !== '' &&
    !(text.startsWith(OPEN) && text.endsWith(CLOSE));
  return safe ? text : `${OPEN}${Buffer.from(text).toString('base64')}${CLOSE}`;
}
