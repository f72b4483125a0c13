/**
 * Signature of an authorization response under the client secret, as Shopify sends it: HMAC-SHA256 in hex
 * over the other parameters, escaped as a form, in the order of their names (Shopify/shopify-app-js,
 * hmac-validator.ts). Pure.
 */
import { createHmac } from 'node:crypto';
import { secret, type Secret } from '../secret.ts';

/** Whether `hmac` of a response is right; a response without it is not signed. */
export function isSigned(query: URLSearchParams, clientSecret: Secret): boolean {
  const given = query.getAll('hmac');
  if (given.length !== 1) return false;
  const signed = new URLSearchParams(query);
  signed.delete('hmac');
  signed.delete('signature');
  signed.sort();
  const text = signed.toString().replaceAll('+', '%20');
  const right = createHmac('sha256', clientSecret.reveal()).update(text).digest('hex');
  return secret(right).equals(secret(given[0] ?? ''));
}
