/** Who somebody is (D13, R10): an issuer and an immutable claim of it. Pure. */

/** A person, as the configured issuer names them. */
export interface Person {
  readonly issuer: string;
  /** Value of the configured immutable claim (`sub`, or `oid` within `tid`). */
  readonly subject: string;
}

/**
 * One text for a person: `<issuer>#<subject>`. Unambiguous, since an issuer identifier has no fragment
 * (RFC 8414, section 2).
 */
export function ownerOf(person: Person): string {
  if (person.issuer.includes('#')) throw new TypeError('an issuer identifier has no fragment');
  return `${person.issuer}#${person.subject}`;
}

/** The person behind an owner text. */
export function personOf(owner: string): Person {
  const at = owner.indexOf('#');
  return { issuer: owner.slice(0, at), subject: owner.slice(at + 1) };
}

/** Whether two owners are the same person: exact, without any normalising. */
export function samePerson(a: string, b: string): boolean {
  return a === b;
}
