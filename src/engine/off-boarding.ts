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

  return {
    endsAlone,

    /** A person ends a connection of their own. */
    async disconnect(owner: string, connectionId: string): Promise<Farewell> {
      const connection = await ledger.readConnection(connectionId);
      if (connection === undefined || connection.owner !== owner) return 'unknown';
      return end(connection, 'person');
    },

    /** Ends every connection of an owner, of a provider, or of both. @returns how many. */
    async endAll(filter: { owner?: string; provider?: string }, by: string): Promise<number> {
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
    },
  };
}
