/** What the face of these revisions works with, and its limits. */
import type { Tasks } from '../../engine/tasks.ts';
import type { Log } from '../../log.ts';
import type { Keyring } from '../../vault/keyring.ts';
import type { Catalogue } from '../catalogue.ts';
import { checkCompanionNames, type Companions } from './companion.ts';
import { NO_DELIVERY, type Delivery } from '../delivery.ts';
import { openPrompts, type Prompts } from './prompts.ts';

/** Lengths and limits. Milliseconds, counts. */
export interface LegacySettings {
  /**
   * How long a call without a task is held before it is answered with "call again". Common clients give up on a call
   * after 60 seconds, whether or not there is progress.
   */
  readonly holdMs: number;
  /** An answer counts as delivered when its connection has stayed without an error for this long. */
  readonly lingerMs: number;
  /** Between two signs of life on a stream: keep-alive comments, and progress where a token was given. */
  readonly keepAliveMs: number;
  /** A session is put out of memory when nothing came for this long. Its id goes on working. */
  readonly idleMs: number;
  /** From this age on a session id is unknown and the client starts a new session. */
  readonly sessionLivesMs: number;
  /** Sessions in memory, of one owner and in all. */
  readonly sessionsPerOwner: number;
  readonly sessions: number;
  /** Requests of one session that are open at a time. */
  readonly openPerSession: number;
  /** Tasks on one page of `tasks/list`. */
  readonly pageSize: number;
}

/** What is used where the configuration says nothing. */
export const DEFAULT_LEGACY_SETTINGS: LegacySettings = {
  holdMs: 50_000,
  lingerMs: 3_000,
  keepAliveMs: 15_000,
  idleMs: 30 * 60_000,
  sessionLivesMs: 7 * 24 * 3_600_000,
  sessionsPerOwner: 50,
  sessions: 5_000,
  openPerSession: 64,
  pageSize: 100,
};

/** What the face is built from. */
export interface LegacyOptions {
  readonly catalogue: Catalogue;
  readonly tasks: Tasks;
  readonly keyring: Keyring;
  /** MCP `Implementation` of this server. */
  readonly serverInfo: { readonly name: string; readonly version: string; readonly title?: string };
  /** MCP `instructions`. */
  readonly instructions?: string;
  readonly delivery?: Delivery;
  readonly companions?: Companions;
  readonly settings?: Partial<LegacySettings>;
  readonly log: Log;
  /** Last look at what a tool gives to a client (D15): replaces secrets in use. */
  readonly scrubText?: (text: string) => string;
  /** Wall clock: lifetimes of ids. */
  readonly wallMs?: () => number;
  /** Monotonic: idleness and holds. */
  readonly nowMs?: () => number;
}

/** The same with everything filled in, and what the sessions of one process share. */
export interface LegacyParts extends Required<Omit<LegacyOptions, 'settings' | 'instructions'>> {
  readonly instructions: string | undefined;
  readonly settings: LegacySettings;
  readonly prompts: Prompts;
}

/** Fills in what was left out. @throws Refusal `configuration_invalid` when a tool has a companion's name. */
export function legacyParts(options: LegacyOptions): LegacyParts {
  const parts: LegacyParts = {
    ...options,
    instructions: options.instructions,
    delivery: options.delivery ?? NO_DELIVERY,
    companions: options.companions ?? 'auto',
    settings: { ...DEFAULT_LEGACY_SETTINGS, ...options.settings },
    scrubText: options.scrubText ?? ((text) => text),
    wallMs: options.wallMs ?? Date.now,
    nowMs: options.nowMs ?? (() => performance.now()),
    prompts: openPrompts(),
  };
  checkCompanionNames(parts.companions, parts.catalogue);
  return parts;
}
