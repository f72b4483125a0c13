/**
 * The sandbox: a whole world for Keyturn on one machine. An issuer with people, a SaaS with accounts,
 * grants and an API, each a site of its own to a browser. For the demo, for trying things out and for
 * tests; it refuses everything that is not loopback and is loaded only when it is asked for.
 */
import type { Secret } from '../secret.ts';
import { openIssuer, type SandboxIssuer } from './issuer.ts';
import { requireLoopback } from './loopback.ts';
import { PROFILE_SCOPE, RECORDS_SCOPE } from './saas-api.ts';
import { openSaas, type Saas } from './saas.ts';

export interface SandboxOptions {
  /** URL of the MCP endpoint; the audience of the issuer's access tokens. */
  readonly mcpResource: string;
  /** Public URL of Keyturn. */
  readonly keyturnPublicUrl: string;
  /** Scopes of the MCP endpoint. Default `mcp:tools`. */
  readonly mcpScopes?: readonly string[];
  /** Fixed ports; any free ones by default. */
  readonly ports?: { readonly issuer?: number; readonly saas?: number };
  /** Lifetime of Paperboat's access tokens. Default 300. */
  readonly accessTokenSeconds?: number;
}

/** What Keyturn has to be told about Paperboat: plain values, whatever the configuration's own shape. */
export interface ProviderSettings {
  readonly id: 'paperboat';
  readonly displayName: string;
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly clientAuthentication: 'client_secret_basic';
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly scopeSeparator: ' ';
  readonly sendsIss: true;
  readonly refreshTokens: 'rotate';
  /** Where an access token may be sent (R16). */
  readonly apiOrigins: readonly string[];
  /** Who the token belongs to, and where the answer says so. */
  readonly identity: { readonly url: string; readonly subjectField: 'id'; readonly labelField: 'email' };
  readonly recordsUrl: string;
}

export interface Sandbox {
  readonly issuer: SandboxIssuer;
  readonly saas: Saas;
  readonly providerSettings: ProviderSettings;
  close(): Promise<void>;
}

/**
 * Opens the sandbox.
 *
 * @throws TypeError when a URL is not on loopback; Error when an address or a port cannot be had.
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  requireLoopback('mcpResource', options.mcpResource);
  const keyturn = requireLoopback('keyturnPublicUrl', options.keyturnPublicUrl);
  const base = options.keyturnPublicUrl.replace(/\/$/, '');
  // Three sites: where only the two usual addresses exist, they are shared out, and never Keyturn's own.
  const others = (addresses: readonly string[]) =>
    addresses.filter((address) => address !== keyturn.hostname && `[${address}]` !== keyturn.hostname);
  const redirectUri = `${base}/callback/paperboat`;

  const issuer = await openIssuer({
    mcpResource: options.mcpResource,
    signInRedirectUri: `${base}/sign-in/return`,
    mcpScopes: options.mcpScopes ?? ['mcp:tools'],
    addresses: others(['127.0.0.2', '127.0.0.1']),
    port: options.ports?.issuer ?? 0,
  });
  let saas: Saas;
  try {
    saas = await openSaas({
      redirectUri,
      addresses: others(['127.0.0.3', '::1']),
      port: options.ports?.saas ?? 0,
      ...(options.accessTokenSeconds === undefined ? {} : { accessTokenSeconds: options.accessTokenSeconds }),
    });
  } catch (error) {
    await issuer.close();
    throw error;
  }
  return {
    issuer,
    saas,
    providerSettings: {
      id: 'paperboat',
      displayName: 'Paperboat',
      issuer: saas.origin,
      authorizationEndpoint: saas.authorizationEndpoint,
      tokenEndpoint: saas.tokenEndpoint,
      revocationEndpoint: saas.revocationEndpoint,
      clientId: saas.clientId,
      clientSecret: saas.clientSecret,
      clientAuthentication: 'client_secret_basic',
      redirectUri,
      scopes: [RECORDS_SCOPE, PROFILE_SCOPE],
      scopeSeparator: ' ',
      sendsIss: true,
      refreshTokens: 'rotate',
      apiOrigins: [saas.origin],
      identity: { url: `${saas.origin}/api/me`, subjectField: 'id', labelField: 'email' },
      recordsUrl: `${saas.origin}/api/records`,
    },
    async close() {
      await Promise.all([issuer.close(), saas.close()]);
    },
  };
}
