/** Time source. Only the edges hold a clock; pure code takes `nowMs`. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
}

/** The clock of this process. Deadlines are decided by the ledger's clock instead (D1, R26). */
export const systemClock: Clock = { nowMs: () => Date.now() };
