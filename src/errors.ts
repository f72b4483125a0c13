/**
 * The closed union of refusals: everything Keyturn says no to, by a stable reason.
 *
 * Three kinds of trouble are never mixed. An *outcome* is a value (a lost race, already done). A *refusal* is
 * thrown, carries a reason from this file and never a secret. Anything else is a *bug* and ends as HTTP 500 or
 * JSON-RPC -32603 without its text. A reason is never renamed and never reused.
 */

/** Reasons, by origin. The text is for operators and tests; what a person reads is in `callbacks/texts.ts`. */
export const REASONS = {
  // The task ended, or cannot begin (codes: `TASK_ERROR_CODES`).
  authorization_declined: 'The client declined to ask the person to sign in.',
  deadline_passed: 'The time to answer ran out before the person finished.',
  elicitation_unsupported: 'The client that started the task cannot show what a person has to answer.',
  access_denied: 'The person, or the provider for them, denied the access.',
  host_gone: 'The client stopped polling for longer than the task allows.',
  provider_misconfigured: "The provider rejected this server's own registration.",
  insufficient_scope: 'The grant lacks a permission that the task needs.',
  interaction_forbidden: 'The task needs a person, and was started with the rule never to ask one.',
  resource_refused: 'The provider refused this resource although the sign-in is good.',
  too_many_tasks: 'A limit on tasks is reached.',
  job_failed: 'The job ended with an error of its own.',
  job_unknown: 'The job that this task runs is no longer defined.',
  task_cancelled: 'The task was cancelled.',
  // The caller's request.
  task_unknown: 'No such task for this caller.',
  tool_unknown: 'No such tool.',
  arguments_invalid: 'The arguments do not fit the schema of the tool.',
  idempotency_conflict: 'The idempotency key was used before with other arguments.',
  request_state_invalid:
    'The request state was not made by this server for this caller and call, or is over.',
  token_missing: 'No access token was sent.',
  token_invalid: 'The access token is not valid here.',
  token_scope: 'The access token lacks a required scope.',
  origin_forbidden: 'The Origin or Host header is not allowed.',
  too_many_requests: 'Too many requests from this caller or address.',
  // The person's browser.
  link_unknown: 'No such link.',
  link_over: 'The link is past its deadline, or its task has ended.',
  link_finished: 'The link was used and the sign-in is complete.',
  person_unknown: 'Nobody is signed in in this browser.',
  person_stale: 'The sign-in in this browser is too old for this step.',
  wrong_person: 'The link was made for somebody else.',
  form_forged: 'The form was not sent from our own page in this session.',
  too_many_attempts: 'Too many attempts were started for this link.',
  state_missing: 'The authorization response carries no state.',
  state_repeated: 'A parameter of the authorization response is repeated.',
  state_unknown: 'No attempt belongs to this state.',
  state_used: 'The attempt of this state was used before.',
  binding_missing: 'The browser that started the attempt did not come back.',
  response_malformed: 'The authorization response has neither a code nor an error.',
  issuer_mismatch: 'The authorization response names another issuer than the one asked (RFC 9207).',
  account_mismatch: 'The account that signed in is another one than before.',
  attempt_lost: 'The answer to the code exchange was lost; the sign-in has to start again.',
  // The provider, as seen by our OAuth client.
  grant_dead: 'The grant is used up, expired or revoked.',
  provider_unavailable: 'The provider did not answer properly; it may later.',
  answer_malformed: 'The provider answered in a shape that its profile does not allow.',
  egress_forbidden: 'The address is not one that this connection may reach.',
  connection_needs_sign_in: 'The connection needs a person to sign in.',
  // Storage and start-up.
  vault_key_missing: 'A vault key that is still in use is not configured.',
  vault_record_unreadable: 'A vault record cannot be opened.',
  vault_record_exists: 'Another vault record stands under this key; records are never overwritten.',
  value_too_large: 'A value is larger than may be sealed.',
  vault_unavailable: 'The vault store failed; nothing was lost, try again.',
  store_unavailable: 'The ledger failed; nothing was changed, try again.',
  store_corrupt: 'The ledger file is damaged.',
  store_newer: 'The ledger was written by a newer version.',
  epoch_mismatch: 'Ledger and vault come from different backups.',
  configuration_invalid: 'The configuration has problems.',
} as const;

/** One of the stable reasons above. */
export type Reason = keyof typeof REASONS;

/**
 * JSON-RPC codes of our own for endings of a task: integers outside −32768…−32000, as MCP 2026-07-28 asks of codes
 * that it does not define (basic/index, "Error Codes").
 */
export const TASK_ERROR_CODES = {
  authorization_declined: 4010,
  deadline_passed: 4011,
  elicitation_unsupported: 4012,
  access_denied: 4013,
  host_gone: 4014,
  provider_misconfigured: 4015,
  insufficient_scope: 4016,
  interaction_forbidden: 4017,
  resource_refused: 4018,
  job_unknown: 4019,
  task_cancelled: 4020,
  too_many_tasks: 4290,
} as const satisfies Partial<Record<Reason, number>>;

/** A reason with a JSON-RPC code of its own. */
export type TaskErrorReason = keyof typeof TASK_ERROR_CODES;

/** Facts that travel with a refusal: plain JSON, never a secret. */
export type RefusalFacts = Readonly<Record<string, string | number | boolean | readonly string[] | null>>;

/**
 * A refusal: thrown where a rule says no.
 *
 * `message` defaults to the text of the reason and must stay free of secrets and of provider texts (D15).
 * `cause` is kept for the operator's log, where the redactor of `log.ts` sees it.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly reason: Reason;
  readonly facts: RefusalFacts;

  constructor(reason: Reason, options: { message?: string; facts?: RefusalFacts; cause?: unknown } = {}) {
    super(options.message ?? REASONS[reason], options.cause === undefined ? {} : { cause: options.cause });
    this.reason = reason;
    this.facts = options.facts ?? {};
  }
}

/** Whether a value is a refusal, optionally with one of these reasons. */
export function isRefusal(value: unknown, ...reasons: Reason[]): value is Refusal {
  return value instanceof Refusal && (reasons.length === 0 || reasons.includes(value.reason));
}
