/** The key that a client put on a call (D7): in `_meta`, or in the HTTP header. */
import { explicitKey, LONGEST_KEY, type IdempotencyKey } from '../../task/idempotency.ts';
import type { Call } from './call.ts';
import { INVALID_PARAMS } from '../json-rpc.ts';
import { RpcError } from './rpc-error.ts';

/** `_meta` key of an idempotency key. */
export const IDEMPOTENCY_META = 'keyturn/idempotencyKey';

/**
 * @returns undefined when the call names no key.
 * @throws RpcError −32602 for a key that is no text of 1 to 256 characters: the client counts on it.
 */
export function namedKey(call: Pick<Call, 'meta' | 'idempotencyKey'>): IdempotencyKey | undefined {
  const named = call.meta[IDEMPOTENCY_META] ?? call.idempotencyKey;
  if (named === undefined) return undefined;
  const key = explicitKey(named);
  if (key === undefined) {
    const message = `_meta["${IDEMPOTENCY_META}"]: must be a text of 1 to ${LONGEST_KEY} characters`;
    throw new RpcError(INVALID_PARAMS, message, { reason: 'arguments_invalid' });
  }
  return key;
}
