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

/** Whether two owners are the same person: exact, without any normalising. */
export function samePerson(a: string, b: string): boolean {
  return a === b;
}

/** Claims that name a person for good. Others, such as `email`, change hands and are refused at start-up (R10). */
export const SUBJECT_CLAIMS = ['sub', 'oid'] as const;

/** One of them. */
export type SubjectClaim = (typeof SUBJECT_CLAIMS)[number];

/**
 * The subject in a token's claims; the same reading for access tokens and browser sign-ins. An object id (`oid`) is
 * unique within its tenant only, so that `tid` belongs to it.
 *
 * @returns undefined when the claim is missing or of another type.
 */
export function subjectOf(
  claims: Readonly<Record<string, unknown>>,
  claim: SubjectClaim,
): string | undefined {
  const subject = claims[claim];
  if (typeof subject !== 'string' || subject === '') return undefined;
  if (claim === 'sub') return subject;
  const tenant = claims['tid'];
  return typeof tenant === 'string' && tenant !== '' ? `${tenant}/${subject}` : undefined;
}
