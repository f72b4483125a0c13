/**
 * Ending connections: by their person, by an operator, by age (R15). At the provider a token is revoked only where
 * that ends this token alone, or where nobody else's connection uses the same account (R5).
 */
import type { Log } from '../log.ts';
import type { TokenSet } from '../provider/token-set.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Connection } from '../store/records.ts';
import type { Grants } from './grants.ts';
import type { ProviderRegistry } from './providers.ts';

/** What became of a connection: `forgotten` means that the provider still knows the token. */
export type Farewell = 'revoked' | 'forgotten' | 'unknown';

export function openOffBoarding(options: {
  ledger: Ledger;
  grants: Grants;
  providers: ProviderRegistry;
  log: Log;
}) {
  const { ledger, grants, providers, log } = options;

  /** Whether a revocation at the provider ends nothing but this connection. */
  async function endsAlone(connection: Connection): Promise<boolean> {
    if (!providers.has(connection.provider)) return false;
    if (providers.get(connection.provider).revocationScope === 'token') return true;
    const subject = connection.record?.subject ?? null;
    return subject !== null && !(await ledger.accountInUse(connection.provider, subject, connection.id));
  }

  /** Ends a connection here first, then at the provider: a provider that is down keeps nothing alive here. */
  async function end(connection: Connection, by: string): Promise<Farewell> {
    let tokens: TokenSet | undefined;
    const alone = await endsAlone(connection);
    if (alone && connection.record !== null) {
      tokens = await grants.openCurrent(connection).catch(() => undefined);
    }
    await ledger.revokeConnection(connection.id, by);
    if (tokens === undefined) return 'forgotten';
    try {
      const done = await providers.get(connection.provider).revoke(tokens);
      return done === 'revoked' ? 'revoked' : 'forgotten';
    } catch (error) {
      log.warn('revocation.failed', { connectionId: connection.id, provider: connection.provider, error });
      return 'forgotten';
    }
  }

  async function endAll(filter: { owner?: string; provider?: string }, by: string): Promise<number> {
    let many = 0;
    for (let after = ''; ;) {
      const page = await ledger.findConnections({ ...filter, after, limit: 100 });
      for (const connection of page) {
        if (connection.status === 'revoked') continue;
        await end(connection, by);
        many += 1;
      }
      const last = page.at(-1);
      if (last === undefined) return many;
      after = last.id;
    }
  }

  async function cancelAll(owner: string): Promise<number> {
    for (let many = 0; ;) {
      let won = 0;
      for (const taskId of await ledger.openTasksOf(owner, 100)) {
        const cancelled = await ledger.cancelTask(owner, taskId, "Cancelled by the server's operator.");
        if (cancelled.won) won += 1;
      }
      many += won;
      // What is left has run out already: the sweep ends it.
      if (won === 0) return many;
    }
  }

  return {
    endsAlone,

    /** A person ends a connection of their own. */
    async disconnect(owner: string, connectionId: string): Promise<Farewell> {
      const connection = await ledger.readConnection(connectionId);
      if (connection === undefined || connection.owner !== owner) return 'unknown';
      return end(connection, 'person');
    },

    /** Ends every connection of an owner, of a provider, or of both. @returns how many. */
    endAll,

    /** Ends connections that are over their age. @returns how many, at most `limit`. */
    async endAged(age: { maxIdleMs?: number; maxAgeMs?: number }, limit: number): Promise<number> {
      const aged = await ledger.agedConnections({ ...age, limit });
      for (const connection of aged) await end(connection, 'age');
      return aged.length;
    },

    /** Blocks an owner: open tasks end, no new one starts, nothing is renewed. @returns how many tasks ended. */
    async block(owner: string): Promise<number> {
      await ledger.blockOwner(owner, true);
      return cancelAll(owner);
    },

    /** Lets a blocked owner start tasks again. */
    async readmit(owner: string): Promise<void> {
      await ledger.blockOwner(owner, false);
    },

    /** Ends and forgets everything of an owner but the audit log. @returns how many rows went. */
    async erase(owner: string): Promise<number> {
      await cancelAll(owner);
      await endAll({ owner }, 'erasure');
      return ledger.eraseOwner(owner);
    },
  };
}
