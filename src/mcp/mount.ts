/**
 * Mounts what MCP clients talk to: the endpoint with its faces, and the metadata of the protected resource. The one
 * place where the faces meet; it decides nothing.
 */
import type { FastifyInstance } from 'fastify';
import type { Tasks } from '../engine/tasks.ts';
import type { Log } from '../log.ts';
import type { Keyring } from '../vault/keyring.ts';
import type { Authenticate } from './bearer.ts';
import type { Catalogue } from './catalogue.ts';
import type { Delivery } from './delivery.ts';
import { mountEndpoint, type LegacyFace } from './endpoint.ts';
import { challengeTerms, mountProtectedResource, type ProtectedResource } from './protected-resource.ts';
import { openFace2026 } from './rev-2026-07-28/face.ts';
import type { ListenSettings } from './rev-2026-07-28/listen.ts';
import { stateSeal } from './rev-2026-07-28/request-state.ts';
import type { ServerInfo } from './rev-2026-07-28/server.ts';

/** What the MCP side of a server is made of. */
export interface McpParts {
  readonly resource: ProtectedResource;
  readonly info: ServerInfo;
  /** `openBearer(…)`, or an embedder's own. */
  readonly authenticate: Authenticate;
  readonly tasks: Tasks;
  readonly catalogue: Catalogue;
  readonly keyring: Keyring;
  /** The face of the revisions before 2026-07-28; without one they are told what is served. */
  readonly legacy?: LegacyFace;
  /** Origins of web clients besides our own. */
  readonly allowedOrigins?: readonly string[];
  /** Other ways for links than URL mode; none by default (D9). */
  readonly delivery?: Delivery;
  /** How long a call without a task handle is held, in milliseconds; 50 s by default. */
  readonly holdMs?: number;
  readonly listen?: Partial<ListenSettings>;
  /** Replaces secrets in use within a text that leaves (D15). */
  readonly scrub: (text: string) => string;
  readonly log: Log;
  readonly wallMs: () => number;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** Mounts it. Closing the server ends streams and held calls first. */
export async function mountMcp(app: FastifyInstance, parts: McpParts): Promise<void> {
  const { resource, holdMs } = parts;
  mountProtectedResource(app, resource);
  await mountEndpoint(app, {
    path: resource.path,
    publicUrl: resource.publicUrl,
    authenticate: parts.authenticate,
    challenge: challengeTerms(resource),
    modern: openFace2026({
      ...parts,
      seal: stateSeal(parts.keyring),
      ...(holdMs === undefined ? {} : { legMs: holdMs }),
    }),
    log: parts.log,
    ...(parts.legacy === undefined ? {} : { legacy: parts.legacy }),
    ...(parts.allowedOrigins === undefined ? {} : { allowedOrigins: parts.allowedOrigins }),
  });
}
