/**
 * Protection against web pages that talk to this server through somebody's browser (MCP, transports/streamable-http,
 * "Security & Endpoint"): a request that names an origin must name ours or an allowed one. On loopback the `Host` is
 * held as well, against names that a page has rebound to this machine. Elsewhere `Host` decides nothing, as it is the
 * proxy's to set (D14). Pure.
 */

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** What may talk to the endpoint. */
export interface OriginRules {
  readonly origins: ReadonlySet<string>;
  readonly loopbackOnly: boolean;
}

/** Rules from the public URL and further origins, such as the one of a web client. */
export function originRules(publicUrl: string, allowedOrigins: readonly string[] = []): OriginRules {
  const { origin, hostname } = new URL(publicUrl);
  const allowed = allowedOrigins.map((one) => new URL(one).origin);
  return { origins: new Set([origin, ...allowed]), loopbackOnly: LOOPBACK.has(hostname) };
}

/** Whether a request's `Origin` and `Host` are acceptable. */
export function originAllowed(
  rules: OriginRules,
  headers: { readonly origin?: string | undefined; readonly host?: string | undefined },
): boolean {
  const { origin, host } = headers;
  if (origin !== undefined && !rules.origins.has(origin) && !(rules.loopbackOnly && isLoopback(origin))) {
    return false;
  }
  return !rules.loopbackOnly || (host !== undefined && isLoopback(`http://${host}`));
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && LOOPBACK.has(new URL(url).hostname);
}
