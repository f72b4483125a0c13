/**
 * Refreshes: one at a time per connection over all processes (R1, R2). It belongs to the connection, not to the task
 * that needed it: no task's abort reaches it. No transaction is open during HTTP; the intent, with the vault key of the
 * answer, is durable before the refresh token is redeemed.
 */
import { isRefusal, Refusal } from '../errors.ts';
import type { Log } from '../log.ts';
import { mergeTokenSet } from '../provider/token-set.ts';
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

  function needsSignIn(generation: number): Refusal {
    return new Refusal('connection_needs_sign_in', { facts: { generation } });
  }

  async function refresh(connectionId: string, generation: number, urgent: boolean): Promise<Connection> {
    let hurry = urgent;
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
          await changed(connectionId, Math.max(5, Math.min(claim.untilMs - claim.nowMs, 250)));
          continue;
        case 'later':
          throw new Refusal('provider_unavailable', { facts: { retryAfterMs: claim.atMs - claim.nowMs } });
        case 'acquired': {
          const done = await redeem(claim);
          if (done !== 'again') return done;
          // One more use of the same refresh token, at once: a provider with a grace window forgives it now.
          hurry = true;
        }
      }
    }
  }

  async function redeem(claim: Extract<RefreshClaim, { kind: 'acquired' }>): Promise<Connection | 'again'> {
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
      tokens: Awaited<ReturnType<Grants['openCurrent']>>,
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

    if (inherited !== null) {
      const left = await grants.recover(place(inherited.recordKey));
      if (left !== undefined) return commit(inherited.recordKey, left.tokens, left);
    }
    const provider = providers.get(connection.provider);
    const rotates = provider.settings.refresh.rotates !== false;
    if (rotates && connection.doubtfulUses >= MOST_DOUBTFUL_USES) {
      await fail('dead', 'grant_dead', 0, false);
      throw needsSignIn(generation);
    }
    const old = await grants.openCurrent(connection);
    if (old.refreshToken === undefined) {
      await fail('dead', 'grant_dead', 0, false);
      throw needsSignIn(generation);
    }
    try {
      const answer = await provider.refresh(old, { scopes });
      const tokens = mergeTokenSet(old, answer);
      const sealed = await grants.seal(place(intent.recordKey), tokens);
      return await commit(intent.recordKey, tokens, sealed);
    } catch (error) {
      if (isRefusal(error, 'grant_dead')) {
        const after = await fail('dead', 'grant_dead', 0, false);
        // Somebody else's answer counts, or is still to come: our token was not the last one.
        if (after !== undefined && (after.generation !== generation || after.status === 'active'))
          return 'again';
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
        if (doubtful && connection.doubtfulUses + 1 < MOST_DOUBTFUL_USES) return 'again';
        if (doubtful && rotates) return 'again';
        throw new Refusal('provider_unavailable', { facts: { retryAfterMs: retryInMs }, cause: error });
      }
      throw error;
    }
  }

  return {
    /**
     * Renews a generation, or waits for whoever does. Everybody in this process shares one flight.
     *
     * @param urgent the provider has just refused the access token: no back-off is waited out.
     * @throws Refusal `connection_needs_sign_in` (fact `generation`), `provider_unavailable` (fact `retryAfterMs`),
     *   `provider_misconfigured`, `vault_unavailable`.
     */
    renew(connectionId: string, generation: number, urgent: boolean): Promise<Connection> {
      const key = `${connectionId} ${generation}`;
      const flying = flights.get(key);
      if (flying !== undefined) return flying;
      const flight = refresh(connectionId, generation, urgent).finally(() => flights.delete(key));
      flights.set(key, flight);
      return flight;
    },

    /** Resolves when no refresh is under way: shutdown waits for it (R1). */
    async idle(): Promise<void> {
      await Promise.allSettled(flights.values());
    },
  };
}
