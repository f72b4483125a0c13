/**
 * Sessions in memory, bounded per owner and in all. Putting one out of memory is harmless: its id opens again. A
 * session that its client ended stays unknown to this process for as long as its id would live.
 */
import type { Caller } from '../../engine/caller.ts';
import type { Client } from './client.ts';
import type { LegacyParts } from './parts.ts';
import { buildSession, rebuildSession, type Session } from './session.ts';
import { newSessionId, openSessionId } from './session-id.ts';

/** Ended sessions that are remembered. */
const MOST_ENDED = 10_000;

interface Kept {
  readonly session: Promise<Session>;
  readonly owner: string;
  usedAtMs: number;
  /** Requests that are open at the moment. */
  open: number;
}

/** The sessions of one process. */
export type Sessions = ReturnType<typeof openSessions>;

export function openSessions(parts: LegacyParts) {
  const { keyring, settings, nowMs, wallMs } = parts;
  // In the order of use, the longest unused first.
  const kept = new Map<string, Kept>();
  const perOwner = new Map<string, number>();
  const ended = new Set<string>();

  const sweeper = setInterval(
    () => {
      const before = nowMs() - settings.idleMs;
      for (const [id, one] of kept) {
        if (one.usedAtMs > before) break;
        if (one.open === 0) drop(id);
      }
    },
    Math.min(settings.idleMs, 60_000),
  );
  sweeper.unref();

  function drop(id: string): void {
    const one = kept.get(id);
    if (one === undefined) return;
    kept.delete(id);
    const left = (perOwner.get(one.owner) ?? 1) - 1;
    if (left <= 0) perOwner.delete(one.owner);
    else perOwner.set(one.owner, left);
    void one.session.then((session) => session.close()).catch(() => undefined);
  }

  /** Makes room: the session that was not used for longest goes, one without open requests first. */
  function dropOne(among: (one: Kept) => boolean): void {
    const ids = [...kept].filter(([, one]) => among(one));
    const [id] = ids.find(([, one]) => one.open === 0) ?? ids[0] ?? [];
    if (id !== undefined) drop(id);
  }

  function keep(id: string, owner: string, session: Promise<Session>): Kept {
    if ((perOwner.get(owner) ?? 0) >= settings.sessionsPerOwner) dropOne((one) => one.owner === owner);
    if (kept.size >= settings.sessions) dropOne(() => true);
    const one: Kept = { session, owner, usedAtMs: nowMs(), open: 0 };
    kept.set(id, one);
    perOwner.set(owner, (perOwner.get(owner) ?? 0) + 1);
    session.catch(() => drop(id));
    return one;
  }

  function use(id: string, one: Kept): void {
    one.usedAtMs = nowMs();
    kept.delete(id);
    kept.set(id, one);
  }

  return {
    /** Starts a session for a client that introduces itself. */
    async start(caller: Caller, client: Client): Promise<Session> {
      const expiresAtMs = Math.floor(wallMs() + settings.sessionLivesMs);
      const id = await newSessionId(keyring, caller, client, expiresAtMs);
      return await keep(id, caller.owner, buildSession(parts, caller, client, id)).session;
    },

    /** The session of an id, or undefined when this caller has none of that id. */
    async find(caller: Caller, id: string): Promise<Session | undefined> {
      // The id is opened on every request: it is what says whose session this is, and until when.
      const client = await openSessionId(keyring, caller, id, Math.floor(wallMs()));
      if (client === undefined || ended.has(id)) return undefined;
      const one = kept.get(id) ?? keep(id, caller.owner, rebuildSession(parts, caller, client, id));
      use(id, one);
      return await one.session;
    },

    /** Counts an open request of a session. Returns what ends it, or undefined when there are too many. */
    enter(session: Session): (() => void) | undefined {
      const one = kept.get(session.id);
      if (one === undefined) return () => undefined;
      if (one.open >= settings.openPerSession) return undefined;
      one.open += 1;
      return () => {
        one.open -= 1;
        if (kept.get(session.id) === one) use(session.id, one);
      };
    },

    /** Ends a session for good. */
    end(session: Session): void {
      if (ended.size >= MOST_ENDED) {
        const oldest = ended.values().next();
        if (oldest.done !== true) ended.delete(oldest.value);
      }
      ended.add(session.id);
      drop(session.id);
    },

    size: (): number => kept.size,

    async close(): Promise<void> {
      clearInterval(sweeper);
      const open = [...kept.values()].map((one) => one.session);
      kept.clear();
      perOwner.clear();
      await Promise.allSettled(open.map(async (session) => (await session).close()));
    },
  };
}
