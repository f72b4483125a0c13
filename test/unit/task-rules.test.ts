import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { argumentsDigest, canonicalJson, explicitKey, implicitKey } from '../../src/task/idempotency.ts';
import { heartbeatEveryMs, hostLeaseRenewalMs, isLive, trustedUntilMs } from '../../src/task/lease.ts';
import { isOpen, pollIntervalMs, READ_BACK_MARGIN_MS, ttlCoveringMs } from '../../src/task/lifetime.ts';
import { isTerminal, TASK_STATUSES } from '../../src/task/status.ts';
import { destination, drawTransitions, origins, TRANSITIONS } from '../../src/task/transitions.ts';

const time = fc.integer({ min: 0, max: 4_000_000_000_000 });

describe('the table of moves', () => {
  it('leads nowhere from a terminal state', () => {
    for (const row of TRANSITIONS) expect(isTerminal(row.from)).toBe(false);
  });

  it('names one destination for a state and a move, and none for a move that the state does not know', () => {
    for (const { from, move, to } of TRANSITIONS) expect(destination(from, move)).toBe(to);
    expect(destination('completed', 'cancel')).toBeUndefined();
    expect(destination('working', 'resume')).toBeUndefined();
    expect(origins('cancel').toSorted()).toEqual(['input_required', 'working']);
  });

  it('reaches every state, and the drawing shows every row', () => {
    const reached = new Set<string>(['working', ...TRANSITIONS.map((row) => row.to)]);
    expect(TASK_STATUSES.every((status) => reached.has(status))).toBe(true);
    for (const { from, to, move } of TRANSITIONS) {
      expect(drawTransitions()).toContain(`${from} --> ${to}: ${move}`);
    }
  });
});

describe('leases and deadlines', () => {
  it('are over at their end, not after it', () => {
    fc.assert(
      fc.property(time, (untilMs) => {
        expect(isLive({ untilMs }, untilMs - 1)).toBe(true);
        expect(isLive({ untilMs }, untilMs)).toBe(false);
        expect(isOpen(untilMs, untilMs - 1)).toBe(true);
        expect(isOpen(untilMs, untilMs)).toBe(false);
      }),
    );
  });

  it('are trusted by their holder for less than they last, counted from the start of the attempt', () => {
    fc.assert(
      fc.property(time, fc.integer({ min: 10, max: 600_000 }), (startedAtMs, leaseMs) => {
        const trusted = trustedUntilMs(startedAtMs, leaseMs);
        expect(trusted).toBeGreaterThan(startedAtMs);
        expect(trusted).toBeLessThan(startedAtMs + leaseMs);
        expect(heartbeatEveryMs(leaseMs) * 2).toBeLessThan(trusted - startedAtMs);
      }),
    );
  });

  it('of hosts are worth a write when half of them is left', () => {
    expect(hostLeaseRenewalMs(10_000, 10_000)).toBe(5_000);
  });

  it('are covered by the lifetime, with the read-back margin, and a lifetime is never lowered', () => {
    fc.assert(
      fc.property(time, fc.nat(1e9), fc.nat(1e9), (createdAtMs, ttlMs, afterMs) => {
        const covered = ttlCoveringMs({ createdAtMs, ttlMs }, createdAtMs + afterMs);
        expect(covered).toBeGreaterThanOrEqual(ttlMs);
        expect(covered).toBeGreaterThanOrEqual(afterMs + READ_BACK_MARGIN_MS);
        expect(Number.isInteger(covered)).toBe(true);
      }),
    );
  });
});

describe('the polling interval', () => {
  it('is short after a change and near the end, and long while a person signs in', () => {
    const fresh = pollIntervalMs({ status: 'working', sinceChangeMs: 0 });
    const old = pollIntervalMs({ status: 'working', sinceChangeMs: 600_000 });
    const nearEnd = pollIntervalMs({ status: 'working', sinceChangeMs: 600_000, fraction: 0.95 });
    const person = pollIntervalMs({ status: 'input_required', sinceChangeMs: 0 });
    expect(fresh).toBeLessThan(old);
    expect(nearEnd).toBeLessThan(old);
    expect(person).toBeGreaterThan(fresh);
  });
});

describe('sameness of calls', () => {
  it('does not depend on the order of members', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
        const turned = Object.fromEntries(Object.entries(args).toReversed());
        expect(argumentsDigest(turned)).toBe(argumentsDigest(args));
      }),
    );
  });

  it('is a JSON text that reads back as the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('keeps named and made keys apart, and refuses what is no usable key', () => {
    expect(explicitKey('a')?.key).not.toBe(implicitKey('a').key);
    expect(explicitKey('')).toBeUndefined();
    expect(explicitKey('x'.repeat(257))).toBeUndefined();
    expect(explicitKey(7)).toBeUndefined();
  });
});
