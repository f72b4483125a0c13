/**
 * Refusals to the wire, in one exhaustive switch. Texts are our own and hold no secret and no provider's words (D15);
 * `data.reason` is the stable name that programs should look at. Anything that is not a refusal is a bug: it is logged
 * by whoever caught it and leaves as -32603 without its text.
 */
import { TASK_ERROR_CODES, type Refusal } from '../errors.ts';
import type { TaskSnapshot } from '../engine/tasks.ts';
import type { Outcome } from '../store/records.ts';
import { endingWords } from './ending-words.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, type JsonObject, type WireError } from './json-rpc.ts';

/** What a bug looks like from outside. */
export const BUG: WireError = { status: 500, code: INTERNAL_ERROR, message: 'Internal error' };

/** A refusal as a JSON-RPC error with its HTTP status. */
export function wireError({ reason, message, facts }: Refusal): WireError {
  const at = (status: number, code: number): WireError => ({
    status,
    code,
    message,
    data: { reason, ...facts },
  });
  switch (reason) {
    // The caller can do something about it: in band, as the specification asks of wrong parameters.
    case 'task_unknown':
    case 'tool_unknown':
    case 'arguments_invalid':
    case 'idempotency_conflict':
    case 'request_state_invalid':
    // Answers that have to travel in a request state do not fit into it.
    case 'value_too_large':
      return at(200, INVALID_PARAMS);
    case 'authorization_declined':
    case 'deadline_passed':
    case 'elicitation_unsupported':
    case 'access_denied':
    case 'host_gone':
    case 'provider_misconfigured':
    case 'insufficient_scope':
    case 'interaction_forbidden':
    case 'resource_refused':
    case 'job_unknown':
    case 'task_cancelled':
    case 'too_many_tasks':
      return at(200, TASK_ERROR_CODES[reason]);
    case 'job_failed':
      return at(200, INTERNAL_ERROR);
    case 'too_many_requests':
      return at(429, TASK_ERROR_CODES.too_many_tasks);
    case 'origin_forbidden':
    case 'token_scope':
      return at(403, INVALID_PARAMS);
    case 'token_missing':
    case 'token_invalid':
      return at(401, INVALID_PARAMS);
    // Nothing was lost; the same request may be sent again.
    case 'store_unavailable':
    case 'vault_unavailable':
    case 'provider_unavailable':
      return {
        status: 503,
        code: INTERNAL_ERROR,
        message: 'Not available at the moment, try again.',
        data: { reason, retryAfterMs: 2_000 },
      };
    // These belong to pages, jobs and start-up. That one of them gets here is a bug, so it says nothing of itself.
    case 'link_unknown':
    case 'link_over':
    case 'link_finished':
    case 'person_unknown':
    case 'person_stale':
    case 'wrong_person':
    case 'form_forged':
    case 'too_many_attempts':
    case 'state_missing':
    case 'state_repeated':
    case 'state_unknown':
    case 'state_used':
    case 'binding_missing':
    case 'response_malformed':
    case 'issuer_mismatch':
    case 'account_mismatch':
    case 'attempt_lost':
    case 'grant_dead':
    case 'answer_malformed':
    case 'egress_forbidden':
    case 'connection_needs_sign_in':
    case 'vault_key_missing':
    case 'vault_record_unreadable':
    case 'vault_record_exists':
    case 'store_corrupt':
    case 'store_newer':
    case 'epoch_mismatch':
    case 'configuration_invalid':
      return BUG;
  }
}

/** How a task failed, as the JSON-RPC error that the call itself would have been answered with (tasks, "Errors"). */
export function outcomeError(
  task: Pick<TaskSnapshot, 'statusMessage'>,
  outcome: Extract<Outcome, { kind: 'error' }>,
): {
  readonly code: number;
  readonly message: string;
  readonly data: JsonObject;
} {
  const { code, reason, facts } = outcome;
  return { code, message: endingWords(task, outcome), data: { reason, ...facts } };
}
