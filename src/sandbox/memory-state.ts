/**
 * What an authorization server of the sandbox remembers, in memory: the storage that oidc-provider asks
 * for, plus the two things that a provider does to its tokens without being asked, which is what the
 * sandbox is for. Nothing is ever written to a disk.
 */

/** What the library stores. */
export type Payload = Readonly<Record<string, unknown>> & {
  readonly grantId?: string;
  readonly uid?: string;
  readonly accountId?: string;
};

interface Entry {
  payload: Payload;
  readonly untilMs: number;
}

/** The library's storage interface for one kind of record. */
export interface Adapter {
  upsert(id: string, payload: Payload, expiresInSeconds?: number): Promise<void>;
  find(id: string): Promise<Payload | undefined>;
  findByUid(uid: string): Promise<Payload | undefined>;
  findByUserCode(): Promise<undefined>;
  consume(id: string): Promise<void>;
  destroy(id: string): Promise<void>;
  revokeByGrantId(grantId: string): Promise<void>;
}

export interface MemoryState {
  /** For the library: the storage of one kind of record. */
  readonly adapter: (kind: string) => Adapter;
  /** Ends every record of a kind. Returns how many there were. */
  endAll(kind: string): number;
  /**
   * Ends every grant of an account with all tokens and codes that came from it. Returns how many grants
   * there were.
   */
  endGrantsOf(accountId: string): number;
  /** Ids of an account's grants. */
  grantsOf(accountId: string): string[];
}

/** Empty state. */
export function memoryState(nowMs: () => number): MemoryState {
  const kinds = new Map<string, Map<string, Entry>>();

  function recordsOf(kind: string): Map<string, Entry> {
    let records = kinds.get(kind);
    if (records === undefined) {
      records = new Map();
      kinds.set(kind, records);
    }
    return records;
  }

  function live(records: Map<string, Entry>, id: string): Entry | undefined {
    const entry = records.get(id);
    if (entry === undefined || nowMs() < entry.untilMs) return entry;
    records.delete(id);
    return undefined;
  }

  function endGrant(grantId: string): void {
    for (const [kind, records] of kinds) {
      if (kind === 'Grant') continue;
      for (const [id, { payload }] of records) {
        if (payload.grantId === grantId) records.delete(id);
      }
    }
  }

  const adapter = (kind: string): Adapter => {
    const records = recordsOf(kind);
    return {
      async upsert(id, payload, expiresInSeconds) {
        const untilMs = expiresInSeconds === undefined ? Infinity : nowMs() + expiresInSeconds * 1000;
        records.set(id, { payload, untilMs });
      },
      find: async (id) => live(records, id)?.payload,
      async findByUid(uid) {
        for (const [id, { payload }] of records) {
          if (payload.uid === uid) return live(records, id)?.payload;
        }
        return undefined;
      },
      findByUserCode: async () => undefined,
      async consume(id) {
        const entry = live(records, id);
        if (entry !== undefined) entry.payload = { ...entry.payload, consumed: Math.floor(nowMs() / 1000) };
      },
      async destroy(id) {
        records.delete(id);
      },
      revokeByGrantId: async (grantId) => endGrant(grantId),
    };
  };

  return {
    adapter,
    endAll(kind) {
      const records = recordsOf(kind);
      const { size } = records;
      records.clear();
      return size;
    },
    grantsOf: (accountId) =>
      [...recordsOf('Grant')].filter(([, { payload }]) => payload.accountId === accountId).map(([id]) => id),
    endGrantsOf(accountId) {
      const grants = recordsOf('Grant');
      let ended = 0;
      for (const [id, { payload }] of grants) {
        if (payload.accountId !== accountId) continue;
        endGrant(id);
        grants.delete(id);
        ended += 1;
      }
      return ended;
    },
  };
}
