/**
 * The sandbox's issuer: authorization server of the MCP server (access tokens as JWTs, RFC 9068, for one
 * resource, RFC 8707; dynamic registration, RFC 7591, and client ID metadata documents, so that real hosts
 * connect), and the place where Keyturn's own pages sign people in (OpenID Connect). Both name people by
 * the same `sub`.
 */
import { randomBytes } from 'node:crypto';
import { importJWK, SignJWT, type JWK } from 'jose';
import { errors, type Context, type GrantModel, type Provider } from 'oidc-provider';
import { secret, type Secret } from '../secret.ts';
import { ISSUER_ACCOUNTS, type Account } from './accounts.ts';
import { openAuthorizationServer } from './authorization-server.ts';
import { isLoopback, requireLoopback } from './loopback.ts';

export interface IssuerOptions {
  /** URL of the MCP endpoint: the audience of access tokens. */
  readonly mcpResource: string;
  /** Where the browser returns to after a sign-in on Keyturn's pages. */
  readonly signInRedirectUri: string;
  /** Scopes that exist at the resource; a host that asks for none is given all. */
  readonly mcpScopes: readonly string[];
  readonly addresses: readonly string[];
  readonly port: number;
}

/** An access token to be minted without a sign-in. */
export interface AccessTokenRequest {
  readonly sub: string;
  readonly clientId: string;
  /** Scopes, separated by spaces. */
  readonly scope: string;
  /** Audience. */
  readonly resource: string;
  /** Zero or less makes a token that has expired. */
  readonly expiresInSeconds: number;
}

export interface SandboxIssuer {
  /** Issuer identifier: compare it as it is. */
  readonly issuer: string;
  readonly jwksUri: string;
  /** Keyturn's client for the sign-in on its pages (`client_secret_post`). */
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly accounts: readonly Account[];
  /**
   * Signs an access token with the issuer's key, as the token endpoint would.
   *
   * @throws TypeError when the resource is not on loopback.
   */
  issueAccessToken(request: AccessTokenRequest): Promise<string>;
  close(): Promise<void>;
}

const CLIENT_ID = 'keyturn';

export async function openIssuer(options: IssuerOptions): Promise<SandboxIssuer> {
  const { mcpResource } = options;
  requireLoopback('mcpResource', mcpResource);
  requireLoopback('signInRedirectUri', options.signInRedirectUri);
  const clientSecret = secret(randomBytes(24).toString('base64url'));
  const mcpScope = options.mcpScopes.join(' ');

  const server = await openAuthorizationServer({
    addresses: options.addresses,
    port: options.port,
    brand: { name: 'Sandbox', tagline: 'the people of this MCP server' },
    accounts: ISSUER_ACCOUNTS,
    accessTokenSeconds: 3600,
    // A host that names no scope gets what there is (RFC 6749, section 3.3).
    rewrite(url) {
      if (url.pathname === '/auth' && !url.searchParams.has('scope')) url.searchParams.set('scope', mcpScope);
    },
    configuration: ({ provider }) => ({
      clients: [
        {
          client_id: CLIENT_ID,
          client_name: 'Keyturn',
          client_secret: clientSecret.reveal(),
          token_endpoint_auth_method: 'client_secret_post',
          redirect_uris: [options.signInRedirectUri],
          grant_types: ['authorization_code'],
          require_auth_time: true,
        },
      ],
      scopes: ['openid', 'offline_access', 'profile', 'email', ...options.mcpScopes],
      clientBasedCORS: (_: Context, origin: string) => URL.canParse(origin) && isLoopback(new URL(origin)),
      loadExistingGrant: (context: Context) => grantFor(provider(), context),
      features: {
        registration: { enabled: true },
        clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
        resourceIndicators: {
          enabled: true,
          // A host of an earlier revision sends no resource indicator; Keyturn's own sign-in needs none.
          defaultResource: (_: Context, client: { clientId: string }, oneOf: unknown) =>
            oneOf ?? (client.clientId === CLIENT_ID ? undefined : mcpResource),
          useGrantedResource: () => true,
          getResourceServerInfo: (_: Context, resource: string) => {
            if (resource !== mcpResource) throw new errors.InvalidTarget();
            return {
              scope: mcpScope,
              audience: mcpResource,
              accessTokenFormat: 'jwt',
              jwt: { sign: { alg: 'ES256' } },
            };
          },
        },
      },
    }),
  });
  return {
    issuer: server.issuer,
    jwksUri: `${server.issuer}/jwks`,
    clientId: CLIENT_ID,
    clientSecret,
    accounts: ISSUER_ACCOUNTS,
    async issueAccessToken({ sub, clientId, scope, resource, expiresInSeconds }) {
      requireLoopback('resource', resource);
      const nowSeconds = Math.floor(Date.now() / 1000);
      return new SignJWT({ client_id: clientId, scope })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: server.signingKey.kid })
        .setIssuer(server.issuer)
        .setSubject(sub)
        .setAudience(resource)
        .setIssuedAt(Math.min(nowSeconds, nowSeconds + expiresInSeconds))
        .setExpirationTime(nowSeconds + expiresInSeconds)
        .setJti(randomBytes(12).toString('base64url'))
        .sign(await importJWK(server.signingKey as JWK, 'ES256'));
    },
    close: () => server.close(),
  };
}

/** What was agreed to before. Keyturn's own pages belong to the same house: nobody is asked about them. */
async function grantFor(provider: Provider, { oidc }: Context): Promise<GrantModel | undefined> {
  const clientId = oidc.client?.clientId ?? '';
  const accountId = oidc.session?.accountId;
  const id = oidc.result?.consent?.grantId ?? oidc.session?.grantIdFor(clientId);
  const earlier = id === undefined ? undefined : await provider.Grant.find(id);
  if (clientId !== CLIENT_ID || accountId === undefined) return earlier;
  const grant = earlier ?? new provider.Grant({ accountId, clientId });
  grant.addOIDCScope([...oidc.requestParamOIDCScopes].join(' '));
  await grant.save();
  return grant;
}
