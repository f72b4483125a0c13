/**
 * The state of a call that goes over several requests (basic/patterns/mrtr): sealed for its way through the client, and
 * bound to the caller, the client, the tool and the arguments, so that it opens for nothing else. It carries what leads
 * back to the durable task, or the answers gathered before there is one; never a secret and never an authorization.
 */
import { Refusal } from '../../errors.ts';
import type { FormContent } from '../../elicitation/form.ts';
import type { Caller } from '../../engine/caller.ts';
import type { Json } from '../../store/records.ts';
import { argumentsDigest } from '../../task/idempotency.ts';
import type { Keyring } from '../../vault/keyring.ts';
import { openValue, sealValue } from '../../vault/sealed-value.ts';
import { isObject } from '../json-rpc.ts';

/** What an earlier request of the call left. */
export type CallState =
  | { readonly kind: 'task'; readonly taskId: string }
  | {
      readonly kind: 'asked';
      readonly answers: ReadonlyMap<string, FormContent>;
      /** What the tool itself left. */
      readonly state: Json;
    };

/** Seals and opens texts under a context. */
export interface StateSeal {
  seal(
    payload: Json,
    options: { readonly expiresAtMs: number; readonly context: readonly string[] },
  ): Promise<string>;
  /** Undefined for whatever was not sealed here under the same context, or is over. */
  open(
    text: string,
    options: { readonly nowMs: number; readonly context: readonly string[] },
  ): Promise<Json | undefined>;
}

/** A seal with the server's own keys. */
export function stateSeal(keyring: Keyring): StateSeal {
  return {
    seal: (payload, options) => sealValue(keyring, 'request-state', payload, options),
    open: async (text, options) =>
      (await openValue(keyring, 'request-state', text, options)) as Json | undefined,
  };
}

/** What a call's state is bound to. */
export interface CallIdentity {
  readonly caller: Caller;
  readonly tool: string;
  /** The arguments as the client sent them. */
  readonly args: unknown;
}

function contextOf({ caller, tool, args }: CallIdentity): string[] {
  return ['tools/call', caller.owner, caller.clientId, tool, argumentsDigest(args)];
}

/** Seals the state of a call until an instant. */
export function sealState(
  seal: StateSeal,
  call: CallIdentity,
  state: CallState,
  expiresAtMs: number,
): Promise<string> {
  const payload: Json =
    state.kind === 'task'
      ? { task: state.taskId }
      : { answers: Object.fromEntries(state.answers) as Json, state: state.state };
  return seal.seal(payload, { expiresAtMs: Math.ceil(expiresAtMs), context: contextOf(call) });
}

/**
 * Opens the state that a client sent back.
 *
 * @throws Refusal `request_state_invalid` for everything that was not made for exactly this caller and call.
 */
export async function openState(
  seal: StateSeal,
  call: CallIdentity,
  text: unknown,
  nowMs: number,
): Promise<CallState> {
  const payload =
    typeof text === 'string' ? await seal.open(text, { nowMs, context: contextOf(call) }) : undefined;
  // Authentic from here on, so the shape is the one that was sealed.
  if (!isObject(payload)) throw new Refusal('request_state_invalid');
  if (typeof payload['task'] === 'string') return { kind: 'task', taskId: payload['task'] };
  const answers = payload['answers'] as Record<string, FormContent>;
  return {
    kind: 'asked',
    answers: new Map(Object.entries(answers)),
    state: payload['state'] as Json,
  };
}
