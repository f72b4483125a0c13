/**
 * The checks on the way to a link's page, one a step, in order: is there such a link, is somebody here, is it the
 * person it was made for, is it still of use.
 */
import { Refusal } from '../../src/errors.ts';
import { samePerson } from '../../src/elicitation/owner.ts';
import { isOpen } from '../../src/task/lifetime.ts';
import type { Asked } from '../../src/store/attempts.ts';
import type { Ledger } from '../../src/store/ledger.ts';
import { hashHandle } from '../../src/vault/link-handle.ts';
import { FRESH_MS, type Session, type SignedIn } from '../session.ts';

const HANDLE = /^[\w-]{16,128}$/;

/** 1. The link exists. @throws Refusal `link_unknown`. */
export async function findLink(ledger: Ledger, handle: string): Promise<Asked> {
  const asked = HANDLE.test(handle) ? await ledger.findLink(hashHandle(handle)) : undefined;
  if (asked === undefined) throw new Refusal('link_unknown');
  return asked;
}

/** 2. Somebody is signed in. @throws Refusal `person_unknown`. */
export function requirePerson(session: Session): SignedIn {
  if (session.person === null) throw new Refusal('person_unknown');
  return session.person;
}

/** 3. It is the person the link was made for. The link stays good for them. @throws Refusal `wrong_person`. */
export function requireOwner(asked: Asked, person: SignedIn): void {
  if (!samePerson(asked.elicitation.owner, person.owner)) throw new Refusal('wrong_person');
}

/** 4. The question is open and its deadline ahead. @throws Refusal `link_finished`, `link_over`. */
export function requireOpen(asked: Asked): void {
  const { elicitation, task, nowMs } = asked;
  if (elicitation.outcome === 'granted' || elicitation.outcome === 'answered') {
    throw new Refusal('link_finished');
  }
  if (task?.status === 'cancelled') throw new Refusal('link_over', { facts: { over: 'cancelled' } });
  if (!isOpen(elicitation.deadlineMs, nowMs)) throw new Refusal('link_over', { facts: { over: 'deadline' } });
  if (task?.status !== 'input_required' || elicitation.finishedAtMs !== null) {
    throw new Refusal('link_over', { facts: { over: 'ended' } });
  }
}

/** 5. Before anything happens: the sign-in is fresh (R9). @throws Refusal `person_stale`. */
export function requireFresh(person: SignedIn, wallMs: number): void {
  if (wallMs - person.atMs > FRESH_MS) throw new Refusal('person_stale');
}
