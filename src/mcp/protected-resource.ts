/**
 * The metadata of this protected resource (RFC 9728), at the well-known place of the origin and at the one with the
 * resource's path. Everything comes from the configured public URL (D14).
 */
import type { FastifyInstance } from 'fastify';
import type { ChallengeTerms } from './challenge.ts';

/** What the document says. */
export interface ProtectedResource {
  /** Public URL of the server, without a trailing slash. */
  readonly publicUrl: string;
  /** Path of the MCP endpoint below it. */
  readonly path: string;
  readonly authorizationServers: readonly string[];
  readonly scopes: readonly string[];
  readonly name: string;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** The resource's identifier: the URL of the MCP endpoint (RFC 8707, 2). */
export function resourceOf({ publicUrl, path }: Pick<ProtectedResource, 'publicUrl' | 'path'>): string {
  return `${publicUrl}${path}`;
}

/**
 * Where challenges say that the document is. The well-known part stands before the resource's path (RFC 9728, 3.1);
 * below a path prefix, where the root of the origin belongs to somebody else, it stands after the prefix.
 */
export function resourceMetadataUrl({
  publicUrl,
  path,
}: Pick<ProtectedResource, 'publicUrl' | 'path'>): string {
  const { origin, pathname } = new URL(publicUrl);
  return pathname === '/' ? `${origin}${WELL_KNOWN}${path}` : `${publicUrl}${WELL_KNOWN}`;
}

/** What challenges of this resource say. */
export function challengeTerms(about: ProtectedResource): ChallengeTerms {
  return { resourceMetadata: resourceMetadataUrl(about), scopes: about.scopes };
}

/** Mounts the document. It is public: a client needs it before it can have a token. */
export function mountProtectedResource(app: FastifyInstance, about: ProtectedResource): void {
  const document = JSON.stringify({
    resource: resourceOf(about),
    authorization_servers: about.authorizationServers,
    scopes_supported: about.scopes,
    bearer_methods_supported: ['header'],
    resource_name: about.name,
  });
  const { pathname } = new URL(resourceOf(about));
  for (const path of new Set([WELL_KNOWN, `${WELL_KNOWN}${about.path}`, `${WELL_KNOWN}${pathname}`])) {
    app.get(path, (_request, reply) =>
      reply
        .header('content-type', 'application/json')
        .header('cache-control', 'public, max-age=300')
        .header('access-control-allow-origin', '*')
        .send(document),
    );
  }
}
