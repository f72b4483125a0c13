/** Lengths and limits of the engine, all in one place. Milliseconds, counts. */
export interface EngineSettings {
  /** Names this process in leases. */
  readonly holder: string;
  /** Tasks that this process runs at a time. */
  readonly workers: number;
  /** Tasks of one owner that run at a time, over all processes. */
  readonly runningPerOwner: number;
  /** Worker lease; renewed after a third of it. */
  readonly leaseMs: number;
  /** How long a wait for a person lasts unless the job says otherwise. */
  readonly waitMs: number;
  /** How long a provider may stay in trouble, without a checkpoint in between, before the task fails. */
  readonly outageMs: number;
  /** Longest pause that a worker sits out; beyond it the task is parked. */
  readonly sitOutMs: number;
  /** Between two runs of the sweeper. */
  readonly sweepEveryMs: number;
  /** Rows of one sweeping transaction. */
  readonly sweepBatch: number;
  /** Lease of a refresh or exchange; longer than the time limit of its HTTP call. */
  readonly exchangeLeaseMs: number;
  /** An access token is renewed this long before it expires. */
  readonly earlyMs: number;
  /** A connection that nobody used for so long ends; never where it is missing (R15). */
  readonly maxIdleMs?: number;
  /** A connection ends so long after its person last signed in; never where it is missing. */
  readonly maxAgeMs?: number;
  /** How long running jobs may go on at shutdown before they are handed back. */
  readonly graceMs: number;
  /** A child process has this long after SIGTERM. */
  readonly killAfterMs: number;
}

/** What is used where the configuration says nothing. */
export const DEFAULT_SETTINGS: Omit<EngineSettings, 'holder'> = {
  workers: 8,
  runningPerOwner: 4,
  leaseMs: 30_000,
  waitMs: 30 * 60_000,
  outageMs: 6 * 3_600_000,
  sitOutMs: 3_000,
  sweepEveryMs: 1_000,
  sweepBatch: 500,
  exchangeLeaseMs: 45_000,
  earlyMs: 60_000,
  graceMs: 3_000,
  killAfterMs: 2_000,
};
