/**
 * Token sets between provider, vault and ledger: sealed before they count, opened when they are used, never anywhere
 * else. The ledger's pointer says which record counts.
 */
import { isRefusal, Refusal } from '../errors.ts';
import type { TokenSet } from '../provider/token-set.ts';
import { parseTokenSet, printTokenSet } from '../provider/token-set.ts';
import type { SecretsInUse } from '../secrets-in-use.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Connection, SealedGrant } from '../store/records.ts';
import type { RecordBinding } from '../vault/record-binding.ts';
import type { Vault } from '../vault/vault.ts';
import type { Changes } from './changes.ts';

/** Opened records that are kept in memory. */
const MOST_OPEN = 1_000;
/** A seal that fails is tried again this often before its caller hears of it: the answer behind it exists once. */
const SEAL_TRIES = 5;

/** What a sealed token set is bound to. */
export interface GrantPlace {
  readonly recordKey: string;
  readonly owner: string;
  readonly provider: string;
  readonly connectionId: string;
  readonly generation: number;
  readonly kind: 'tokens' | 'credential';
}

/** What the record of a connection is bound to. */
export function bindingOf(connection: Connection, record: SealedGrant): RecordBinding {
  return {
    recordKey: record.recordKey,
    owner: connection.owner,
    provider: connection.provider,
    connectionId: connection.id,
    generation: record.sealedGeneration,
    kind: record.kind,
  };
}

export type Grants = ReturnType<typeof openGrants>;

export function openGrants(options: {
  ledger: Ledger;
  vault: Vault;
  changes: Changes;
  secrets: SecretsInUse;
}) {
  const { ledger, vault, secrets } = options;
  const open = new Map<string, TokenSet>();

  function remember(recordKey: string, tokens: TokenSet): TokenSet {
    secrets.add(tokens.accessToken);
    if (tokens.refreshToken !== undefined) secrets.add(tokens.refreshToken);
    if (open.size >= MOST_OPEN) {
      const oldest = open.keys().next();
      if (oldest.done !== true) open.delete(oldest.value);
    }
    open.set(recordKey, tokens);
    return tokens;
  }

  /** What the ledger keeps of a token set. */
  function describe(
    place: GrantPlace,
    tokens: TokenSet,
    sealed: { digest: string; kid: string },
    account: { subject: string | null; label: string | null },
    asked: readonly string[],
  ): SealedGrant {
    return {
      recordKey: place.recordKey,
      digest: sealed.digest,
      kid: sealed.kid,
      sealedGeneration: place.generation,
      kind: place.kind,
      scopes: tokens.scopes ?? asked,
      expiresAtMs: tokens.expiresAtMs ?? null,
      refreshable: tokens.refreshToken !== undefined,
      captured: tokens.captured,
      subject: account.subject,
      subjectLabel: account.label,
    };
  }

  return {
    describe,

    /** Seals a token set under a reserved key, trying again while the vault's store fails. */
    async seal(place: GrantPlace, tokens: TokenSet): Promise<{ digest: string; kid: string }> {
      for (let tries = 1; ; tries += 1) {
        try {
          const sealed = await vault.seal(place, printTokenSet(tokens));
          remember(place.recordKey, tokens);
          return sealed;
        } catch (error) {
          if (!isRefusal(error, 'vault_unavailable', 'store_unavailable') || tries >= SEAL_TRIES) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, 50 * 2 ** tries));
      }
    },

    /** What an earlier holder sealed under a key but never committed. */
    async recover(place: GrantPlace): Promise<{ tokens: TokenSet; digest: string; kid: string } | undefined> {
      const found = await vault.recover(place);
      if (found === undefined) return undefined;
      return { tokens: remember(place.recordKey, parseTokenSet(found.plaintext)), ...found };
    },

    /**
     * The current token set of a connection.
     *
     * @throws Refusal `connection_needs_sign_in` (fact `generation`) when there is none or it cannot be opened: then
     *   this connection signs in again, and no other is touched.
     */
    async openCurrent(connection: Connection): Promise<TokenSet> {
      let current = connection;
      for (let reads = 0; ; reads += 1) {
        const { record } = current;
        if (record === null || current.status === 'revoked') {
          throw new Refusal('connection_needs_sign_in', { facts: { generation: current.generation } });
        }
        const known = open.get(record.recordKey);
        if (known !== undefined) return known;
        try {
          const plaintext = await vault.open(bindingOf(current, record), record.digest);
          return remember(record.recordKey, parseTokenSet(plaintext));
        } catch (error) {
          if (!isRefusal(error, 'vault_record_unreadable')) throw error;
          // Superseded while we read? The pointer knows (R22).
          const again = await ledger.readConnection(current.id);
          if (again !== undefined && again.record?.recordKey !== record.recordKey && reads < 3) {
            current = again;
            continue;
          }
          await ledger.condemn(current.id, current.generation, 'vault_record_unreadable');
          throw new Refusal('connection_needs_sign_in', {
            facts: { generation: current.generation },
            cause: error,
          });
        }
      }
    },
  };
}
