/**
 * Reads a typed credential. Pure. A value is taken whole or refused with words for its field: never cut short, and
 * never one that no request header could carry.
 */
import type { CredentialForm } from '../../src/provider/client.ts';
import { secret, type Secret } from '../../src/secret.ts';
import { texts } from '../texts.ts';

/** What was typed. */
export type CredentialFields =
  | { readonly given: Readonly<Record<string, Secret>> }
  /** What is wrong, by the name of the field; holds nothing of what was typed. */
  | { readonly errors: Readonly<Record<string, string>> };

type Field = CredentialForm['fields'][number];

function problemOf(field: Field, value: string): string | undefined {
  const words = texts.credential.fieldProblems;
  if (value === '') return field.isOptional === true ? undefined : words.empty;
  if (value.length > field.maxLength) return words.tooLong(field.maxLength);
  // Field values of HTTP are visible ASCII and spaces (RFC 9110, section 5.5).
  if (field.kind === 'secret' && !/^[\x20-\x7e]+$/.test(value)) return words.characters;
  return /\p{Cc}/u.test(value) ? words.characters : undefined;
}

/** Reads the fields of a form that was sent. */
export function readCredentialFields(
  fields: readonly Field[],
  body: Readonly<Record<string, unknown>>,
): CredentialFields {
  const errors: Record<string, string> = {};
  const given: Record<string, Secret> = {};
  for (const field of fields) {
    const typed = body[field.name];
    const value = typeof typed === 'string' ? typed.trim() : '';
    const problem = problemOf(field, value);
    if (problem !== undefined) errors[field.name] = problem;
    else if (value !== '') given[field.name] = secret(value);
  }
  return Object.keys(errors).length > 0 ? { errors } : { given };
}
