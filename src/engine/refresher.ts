/**
 * Refreshes: one at a time per connection over all processes (R1, R2). It belongs to the connection, not to the task
 * that needed it: no task's abort reaches it. No transaction is open during HTTP; the intent, with the vault key of the
 * answer, is durable before the refresh token is redeemed.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isRefusal, Refusal } from '../errors.ts';
import type { Log } from '../log.ts';
import { mergeTokenSet, type TokenSet } from '../provider/token-set.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Connection } from '../store/records.ts';
import type { RefreshClaim } from '../store/connections.ts';
import type { Vault } from '../vault/vault.ts';
import type { Changes } from './changes.ts';
import type { GrantPlace, Grants } from './grants.ts';
import type { Meter } from './meter.ts';
import type { ProviderRegistry } from './providers.ts';
import type { EngineSettings } from './settings.ts';

/** A refresh token whose answer was lost is tried this often in all; a provider that rotates may punish more. */
const MOST_DOUBTFUL_USES = 2;
/**
 * Before the second use of such a token: long enough for the network to come back, short enough for the grace time of a
 * provider that forgives. Where the profile knows that time, half of it, at most `LONGEST_AGAIN_MS`.
 */
const AGAIN_MS = 1_000;
const LONGEST_AGAIN_MS = 15_000;
/** An answer that could not be stored is tried again this often. */
const STORE_AGAIN_MS = 1_000;

export type Refresher = ReturnType<typeof openRefresher>;

export function openRefresher(options: {
  ledger: Ledger;
  vault: Vault;
  grants: Grants;
  providers: ProviderRegistry;
  changes: Changes;
  settings: EngineSettings;
  log: Log;
  meter: Meter;
}) {
  const { ledger, vault, grants, providers, settings, log, meter } = options;
  const flights = new Map<string, Promise<Connection>>();
  // Answers that came and could not be stored yet. Each holds the only live token of its connection (R2).
  const kept = new Map<string, () => Promise<Connection>>();
  const timers = new Map<string, NodeJS.Timeout>();
  let stopping = false;
  const waiting = new Map<string, Set<() => void>>();
  options.changes.onConnection((id) => waiting.get(id)?.forEach((wake) => wake()));

  function changed(connectionId: string, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const set = waiting.get(connectionId) ?? new Set();
      const done = (): void => {
        clearTimeout(timer);
        set.delete(done);
        if (set.size === 0) waiting.delete(connectionId);
        resolve();
      };
      const timer = setTimeout(done, ms);
      set.add(done);
      waiting.set(connectionId, set);
    });
  }

  /** Waits for the holder, reading: a claim writes, and many that wait must not keep others from writing. */
  async function released(connectionId: string, generation: number, ms: number): Promise<void> {
    const untilMs = performance.now() + ms;
    for (;;) {
      const leftMs = untilMs - performance.now();
      await changed(connectionId, Math.max(5, Math.min(leftMs, 250)));
      const now = await ledger.readConnection(connectionId);
      const isHeld = now?.status === 'active' && now.generation === generation && now.intent !== null;
      if (!isHeld || leftMs <= 250) return;
    }
  }

  function needsSignIn(generation: number): Refusal {
    return new Refusal('connection_needs_sign_in', { facts: { generation } });
  }

  async function refresh(connectionId: string, generation: number): Promise<Connection> {
    let hurry = false;
    if (kept.has(keyOf(connectionId, generation))) return store(connectionId, generation);
    // A holder that hangs keeps us for its lease at most; a provider that is down ends the loop by `later`.
    for (;;) {
      const claim = await ledger.claimRefresh({
        connectionId,
        generation,
        holder: settings.holder,
        leaseMs: settings.exchangeLeaseMs,
        recordKey: vault.reserveKey(),
        urgent: hurry,
      });
      switch (claim?.kind) {
        case undefined:
        case 'needs sign-in':
          throw needsSignIn(generation);
        case 'newer':
          return claim.connection;
        case 'busy':
          await released(connectionId, generation, claim.untilMs - claim.nowMs);
          continue;
        case 'later':
          throw new Refusal('provider_unavailable', { facts: { retryAfterMs: claim.atMs - claim.nowMs } });
        case 'acquired': {
          const done = await redeem(claim);
          if (!('againMs' in done)) return done;
          // One more use of the same refresh token, soon: a provider with a grace time forgives it now.
          await pause(done.againMs);
          hurry = true;
        }
      }
    }
  }

  /** Stores an answer that was kept; it stays kept, and is tried again, while our own store fails. */
  async function store(connectionId: string, generation: number): Promise<Connection> {
    const key = keyOf(connectionId, generation);
    const work = kept.get(key);
    if (work === undefined) throw needsSignIn(generation);
    try {
      const connection = await work();
      kept.delete(key);
      return connection;
    } catch (error) {
      if (!isRefusal(error, 'vault_unavailable', 'store_unavailable')) {
        kept.delete(key);
        throw error;
      }
      log.error('refresh.not stored', { connectionId, generation, error });
      const again = (): void => void renew(connectionId, generation).catch(() => undefined);
      if (!stopping) timers.set(key, setTimeout(again, STORE_AGAIN_MS).unref());
      throw error;
    }
  }

  async function redeem(
    claim: Extract<RefreshClaim, { kind: 'acquired' }>,
  ): Promise<Connection | { againMs: number }> {
    const { connection, intent, inherited } = claim;
    const { generation, id: connectionId, record } = connection;
    const place = (recordKey: string): GrantPlace => ({
      recordKey,
      owner: connection.owner,
      provider: connection.provider,
      connectionId,
      generation: generation + 1,
      kind: 'tokens',
    });
    const account = { subject: record?.subject ?? null, label: record?.subjectLabel ?? null };
    const scopes = record?.scopes ?? [];

    async function commit(
      recordKey: string,
      tokens: TokenSet,
      sealed: { digest: string; kid: string },
    ): Promise<Connection> {
      const grant = grants.describe(place(recordKey), tokens, sealed, account, scopes);
      const { won, connection: after } = await ledger.commitRefresh({ connectionId, generation, grant });
      meter.count('refresh', { outcome: won ? 'renewed' : 'superseded' });
      if (after === undefined || after.status !== 'active') throw needsSignIn(generation);
      return after;
    }

    async function fail(
      verdict: 'later' | 'dead' | 'misconfigured',
      reason: string,
      retryInMs: number,
      doubtful: boolean,
    ): Promise<Connection | undefined> {
      meter.count('refresh', { outcome: verdict });
      log.warn('refresh.failed', {
        connectionId,
        provider: connection.provider,
        generation,
        verdict,
        reason,
      });
      return ledger.failRefresh({
        connectionId,
        generation,
        holder: intent.holder,
        verdict,
        reason,
        retryInMs,
        doubtful,
      });
    }

    async function prepare() {
      const provider = providers.get(connection.provider);
      const left = inherited === null ? undefined : await grants.recover(place(inherited.recordKey));
      return { provider, left, old: await grants.openCurrent(connection) };
    }
    const { provider, left, old } = await prepare().catch(async (error: unknown) => {
      // Nothing was redeemed: nobody waits for our lease, and no use of the refresh token is in doubt.
      const reason = isRefusal(error) ? error.reason : 'unexpected';
      await fail('later', reason, STORE_AGAIN_MS, false).catch(() => undefined);
      throw error;
    });
    if (left !== undefined && inherited !== null) return commit(inherited.recordKey, left.tokens, left);
    const { rotates: mayRotate, graceMs } = provider.settings.refresh;
    const rotates = mayRotate !== false;
    if (old.refreshToken === undefined || (rotates && connection.doubtfulUses >= MOST_DOUBTFUL_USES)) {
      await fail('dead', 'grant_dead', 0, false);
      throw needsSignIn(generation);
    }
    let answer: TokenSet;
    try {
      answer = await provider.refresh(old, { scopes });
    } catch (error) {
      if (isRefusal(error, 'grant_dead')) {
        const after = await fail('dead', 'grant_dead', 0, false);
        // Somebody else's answer counts, or is still to come: our token was not the last one.
        if (after !== undefined && (after.generation !== generation || after.status === 'active'))
          return { againMs: 0 };
        throw needsSignIn(generation);
      }
      if (isRefusal(error, 'provider_misconfigured')) {
        await fail('misconfigured', 'provider_misconfigured', 60_000, false);
        throw error;
      }
      if (isRefusal(error, 'provider_unavailable', 'answer_malformed')) {
        const after = error.facts['retryAfterMs'];
        const answered = typeof error.facts['status'] === 'number';
        // Sent, and no answer, or one that we cannot read: the refresh token may be spent.
        const doubtful = error.facts['sent'] === true && (!answered || error.reason === 'answer_malformed');
        const retryInMs =
          typeof after === 'number' ? after : Math.min(1_000 * 2 ** connection.failures, 300_000);
        await fail('later', error.reason, retryInMs, doubtful);
        if (doubtful && connection.doubtfulUses + 1 < MOST_DOUBTFUL_USES) {
          return { againMs: graceMs === undefined ? AGAIN_MS : Math.min(graceMs / 2, LONGEST_AGAIN_MS) };
        }
        // Both uses in doubt: the next claim ends the grant, without a third use.
        if (doubtful && rotates) return { againMs: 0 };
        throw new Refusal('provider_unavailable', { facts: { retryAfterMs: retryInMs }, cause: error });
      }
      throw error;
    }
    const tokens = mergeTokenSet(old, answer);
    kept.set(keyOf(connectionId, generation), async () =>
      commit(intent.recordKey, tokens, await grants.seal(place(intent.recordKey), tokens)),
    );
    return store(connectionId, generation);
  }

  function renew(connectionId: string, generation: number): Promise<Connection> {
    const key = keyOf(connectionId, generation);
    const flying = flights.get(key);
    if (flying !== undefined) return flying;
    clearTimeout(timers.get(key));
    timers.delete(key);
    const flight = refresh(connectionId, generation).finally(() => flights.delete(key));
    flights.set(key, flight);
    return flight;
  }

  return {
    /**
     * Renews a generation, or waits for whoever does. Everybody in this process shares one flight. A back-off that the
     * provider asked for holds for everybody, whatever its API says meanwhile.
     *
     * @throws Refusal `connection_needs_sign_in` (fact `generation`), `provider_unavailable` (fact `retryAfterMs`),
     *   `provider_misconfigured`; `vault_unavailable`, `store_unavailable`: an answer that came is kept and stored later.
     */
    renew,

    /** Resolves when no refresh is under way, and stores what was kept: shutdown waits for it (R1). */
    async idle(): Promise<void> {
      stopping = true;
      timers.forEach((timer) => clearTimeout(timer));
      await Promise.allSettled(flights.values());
      await Promise.allSettled([...kept.values()].map((work) => work()));
    },
  };
}

function keyOf(connectionId: string, generation: number): string {
  return `${connectionId} ${generation}`;
}
