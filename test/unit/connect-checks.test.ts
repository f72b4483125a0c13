/** The checks on the way to a link's page, one by one. */
import { describe, expect, test } from 'vitest';
import { requireFresh, requireOpen, requireOwner, requirePerson } from '../../callbacks/connect/asked.ts';
import { FRESH_MS, type SignedIn } from '../../callbacks/session.ts';
import { isRefusal } from '../../src/errors.ts';
import type { Asked } from '../../src/store/attempts.ts';

const person: SignedIn = { owner: 'https://issuer.example|alice', label: 'Alice', atMs: 1_000 };

function asked(over: {
  status?: string;
  outcome?: string;
  finishedAtMs?: number;
  nowMs?: number;
  owner?: string;
}): Asked {
  return {
    elicitation: {
      owner: over.owner ?? person.owner,
      outcome: over.outcome ?? null,
      finishedAtMs: over.finishedAtMs ?? null,
      deadlineMs: 10_000,
    },
    task: over.status === 'forgotten' ? undefined : { status: over.status ?? 'input_required' },
    nowMs: over.nowMs ?? 9_999,
  } as Asked;
}

function refusal(check: () => unknown): unknown {
  try {
    check();
    return 'passes';
  } catch (error) {
    return isRefusal(error) ? [error.reason, ...Object.values(error.facts)].join(' ') : error;
  }
}

describe('a link', () => {
  test.each([
    ['is open until a millisecond before its deadline', {}, 'passes'],
    ['is over at its deadline', { nowMs: 10_000 }, 'link_over deadline'],
    [
      'is finished when it was granted, also after the deadline',
      { outcome: 'granted', nowMs: 20_000 },
      'link_finished',
    ],
    ['is over when its task was cancelled', { status: 'cancelled' }, 'link_over cancelled'],
    ['is over when its task failed', { status: 'failed' }, 'link_over ended'],
    ['is over when its task works again', { status: 'working' }, 'link_over ended'],
    ['is over when its task is forgotten', { status: 'forgotten' }, 'link_over ended'],
    ['is over when another link took its place', { finishedAtMs: 5, outcome: 'short' }, 'link_over ended'],
  ])('%s', (_what, over, outcome) => {
    expect(refusal(() => requireOpen(asked(over)))).toBe(outcome);
  });

  test.each([
    ['its person', person.owner, 'passes'],
    ['somebody else', 'https://issuer.example|bob', 'wrong_person'],
    ['the same subject of another issuer', 'https://other.example|alice', 'wrong_person'],
    ['the same person in capitals', person.owner.toUpperCase(), 'wrong_person'],
  ])('asked for by %s', (_who, owner, outcome) => {
    expect(refusal(() => requireOwner(asked({}), { ...person, owner }))).toBe(outcome);
  });
});

describe('a sign-in in the browser', () => {
  test('is needed', () => {
    expect(refusal(() => requirePerson({ id: 'x', person: null }))).toBe('person_unknown');
    expect(requirePerson({ id: 'x', person })).toBe(person);
  });

  test.each([
    [FRESH_MS, 'passes'],
    [FRESH_MS + 1, 'person_stale'],
  ])('that is %i ms old %s', (ageMs, outcome) => {
    expect(refusal(() => requireFresh(person, person.atMs + ageMs))).toBe(outcome);
  });
});
