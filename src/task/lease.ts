/** Leases: who may act on a record until when. Pure; the conditional writes in `store/` repeat these comparisons. */

/** A claim on a record. `term` grows by one at every change of hands and travels with every write (fencing). */
export interface Lease {
  readonly holder: string;
  readonly term: number;
  readonly untilMs: number;
}

/** A lease is live while now < until; at `untilMs` it is over, whether or not somebody else has taken it. */
export function isLive(lease: Pick<Lease, 'untilMs'>, nowMs: number): boolean {
  return nowMs < lease.untilMs;
}

/**
 * Until when a holder may trust its own lease without asking: counted from the *start* of the call that took or
 * renewed it, since the ledger may have written the lease any time before the answer came back.
 *
 * @param startedAtMs local time at which the claim or renewal was sent.
 * @param leaseMs length of the lease.
 * @param marginMs what is kept back for clocks that run at different speeds.
 */
export function trustedUntilMs(startedAtMs: number, leaseMs: number, marginMs = leaseMs / 10): number {
  return startedAtMs + leaseMs - marginMs;
}

/** When a holder renews: after a third of the lease, so that two renewals may fail before it lapses. */
export function heartbeatEveryMs(leaseMs: number): number {
  return Math.max(1, Math.floor(leaseMs / 3));
}

/** When a host lease is worth a write: once half of it is left (R27). */
export function hostLeaseRenewalMs(untilMs: number, leaseMs: number): number {
  return untilMs - leaseMs / 2;
}
