/**
 * One page for every refusal that a person can meet. The table says, for each, its HTTP status, its sign, and
 * what the page may offer and name; what is not in the table is not shown, whatever the model holds.
 *
 * It shows no text of a provider and no detail of an error (D15); to the wrong person it names neither task,
 * provider nor owner.
 */
import type { Reason, RefusalFacts } from '../../src/errors.ts';
import { texts, type RefusedVariant } from '../texts.ts';
import { buttonForm, type PostTarget } from './form.ts';
import { html, type Html } from './html.ts';
import { SIGNS } from './mark.ts';
import { linkLasts } from './moment.ts';
import { page, type PageModel } from './page.ts';
import { scopeList, type ScopeView } from './scope.ts';
import { shown } from './shown.ts';

/**
 * Model of the page. Everything but the variant is optional: an error must never be in the way of its own
 * page.
 */
export interface RefusedModel extends PageModel {
  readonly variant: RefusedVariant;
  readonly providerName?: string;
  /** For `wrong-account`. */
  readonly expectedAccount?: string;
  readonly actualAccount?: string;
  /** For `permission-missing`. */
  readonly missing?: readonly ScopeView[];
  /** Where *Try again* is sent, where trying again makes sense. */
  readonly retry?: PostTarget;
  /** Where *Sign in as someone else* is sent, for `wrong-person`. */
  readonly switchPerson?: PostTarget;
  /** Lifetime of the link, where it still works. */
  readonly link?: { readonly deadlineMs: number; readonly nowMs: number };
  /** Number under which the operator finds the event in the log. Not a secret, not an id of a task. */
  readonly eventId?: string;
}

interface Rule {
  readonly status: number;
  readonly sign: keyof typeof SIGNS;
  /** The button that the page offers, if the model says where it leads. */
  readonly offer: 'retry' | 'start-again' | 'switch-person' | 'none';
  /** Whether the page may name the provider, accounts, permissions and the lifetime of the link. */
  readonly mayName: boolean;
}

const RULES: Record<RefusedVariant, Rule> = {
  'wrong-person': { status: 403, sign: 'stop', offer: 'switch-person', mayName: false },
  // Not 401, which would owe a WWW-Authenticate challenge (RFC 9110, section 15.5.2).
  'sign-in-needed': { status: 403, sign: 'note', offer: 'none', mayName: false },
  'link-unknown': { status: 404, sign: 'stop', offer: 'none', mayName: false },
  expired: { status: 410, sign: 'stop', offer: 'none', mayName: false },
  cancelled: { status: 410, sign: 'note', offer: 'none', mayName: false },
  'task-ended': { status: 410, sign: 'note', offer: 'none', mayName: false },
  'declined-by-client': { status: 410, sign: 'note', offer: 'none', mayName: false },
  'already-done': { status: 200, sign: 'good', offer: 'none', mayName: false },
  denied: { status: 200, sign: 'note', offer: 'none', mayName: true },
  'provider-trouble': { status: 502, sign: 'stop', offer: 'retry', mayName: true },
  'wrong-account': { status: 409, sign: 'stop', offer: 'retry', mayName: true },
  'permission-missing': { status: 409, sign: 'stop', offer: 'retry', mayName: true },
  'attempt-lost': { status: 409, sign: 'stop', offer: 'start-again', mayName: true },
  'attempt-used': { status: 409, sign: 'note', offer: 'none', mayName: false },
  'other-browser': { status: 403, sign: 'stop', offer: 'none', mayName: false },
  'answer-mixed-up': { status: 400, sign: 'stop', offer: 'none', mayName: false },
  'answer-unknown': { status: 400, sign: 'stop', offer: 'none', mayName: false },
  'too-many-attempts': { status: 429, sign: 'stop', offer: 'none', mayName: false },
  'form-forged': { status: 403, sign: 'stop', offer: 'none', mayName: false },
  'rate-limited': { status: 429, sign: 'stop', offer: 'none', mayName: false },
  misconfigured: { status: 500, sign: 'stop', offer: 'none', mayName: true },
  'storage-busy': { status: 503, sign: 'stop', offer: 'retry', mayName: false },
  internal: { status: 500, sign: 'stop', offer: 'none', mayName: false },
};

/** The page of each reason. A reason that is not meant for a browser is a bug there, and shown as one. */
const VARIANTS: Record<Reason, RefusedVariant> = {
  authorization_declined: 'declined-by-client',
  deadline_passed: 'expired',
  elicitation_unsupported: 'task-ended',
  access_denied: 'denied',
  host_gone: 'task-ended',
  provider_misconfigured: 'misconfigured',
  insufficient_scope: 'permission-missing',
  interaction_forbidden: 'task-ended',
  resource_refused: 'task-ended',
  too_many_tasks: 'internal',
  job_failed: 'task-ended',
  job_unknown: 'task-ended',
  task_cancelled: 'task-ended',
  task_unknown: 'internal',
  tool_unknown: 'internal',
  arguments_invalid: 'internal',
  idempotency_conflict: 'internal',
  request_state_invalid: 'internal',
  token_missing: 'internal',
  token_invalid: 'internal',
  token_scope: 'internal',
  origin_forbidden: 'form-forged',
  too_many_requests: 'rate-limited',
  link_unknown: 'link-unknown',
  link_over: 'expired',
  link_finished: 'already-done',
  person_unknown: 'sign-in-needed',
  person_stale: 'sign-in-needed',
  wrong_person: 'wrong-person',
  form_forged: 'form-forged',
  too_many_attempts: 'too-many-attempts',
  state_missing: 'answer-unknown',
  state_repeated: 'answer-unknown',
  state_unknown: 'answer-unknown',
  state_used: 'attempt-used',
  binding_missing: 'other-browser',
  response_malformed: 'answer-unknown',
  issuer_mismatch: 'answer-mixed-up',
  account_mismatch: 'wrong-account',
  attempt_lost: 'attempt-lost',
  grant_dead: 'attempt-lost',
  provider_unavailable: 'provider-trouble',
  answer_malformed: 'provider-trouble',
  egress_forbidden: 'misconfigured',
  connection_needs_sign_in: 'attempt-lost',
  vault_key_missing: 'internal',
  vault_record_unreadable: 'internal',
  vault_unavailable: 'storage-busy',
  store_unavailable: 'storage-busy',
  store_corrupt: 'internal',
  store_newer: 'internal',
  epoch_mismatch: 'internal',
  vault_record_exists: 'internal',
  value_too_large: 'internal',
  configuration_invalid: 'internal',
};

/**
 * The page for a refusal.
 *
 * @param facts for `link_over`: `over` is `deadline`, `cancelled` or `ended`, and says why; without it, the
 * deadline
 */
export function refusedVariant(reason: Reason, facts: RefusalFacts = {}): RefusedVariant {
  if (reason === 'link_over' && facts['over'] === 'cancelled') return 'cancelled';
  if (reason === 'link_over' && facts['over'] === 'ended') return 'task-ended';
  return VARIANTS[reason];
}

/** HTTP status of the page. */
export function refusedStatus(variant: RefusedVariant): number {
  return RULES[variant].status;
}

function offer(rule: Rule, model: RefusedModel): Html | undefined {
  if (rule.offer === 'switch-person' && model.switchPerson !== undefined) {
    return buttonForm(model.switchPerson, 'switch-person', texts.signIn.someoneElse, 'main');
  }
  if ((rule.offer === 'retry' || rule.offer === 'start-again') && model.retry !== undefined) {
    return buttonForm(model.retry, 'retry', rule.offer === 'retry' ? texts.retry : texts.startAgain, 'main');
  }
  return undefined;
}

/** Renders the page. */
export function refusedPage(model: RefusedModel): string {
  const rule = RULES[model.variant];
  const named = rule.mayName ? model : undefined;
  const provider = named?.providerName === undefined ? undefined : shown(named.providerName);
  const words = texts.refused[model.variant]({
    server: shown(model.site.serverName),
    provider: provider ?? texts.aProvider,
    expectedAccount: named?.expectedAccount === undefined ? undefined : shown(named.expectedAccount, 120),
    actualAccount: named?.actualAccount === undefined ? undefined : shown(named.actualAccount, 120),
  });
  const heading = words.heading.charAt(0).toUpperCase() + words.heading.slice(1);
  const missing =
    model.variant !== 'permission-missing' || model.missing === undefined || model.missing.length === 0
      ? undefined
      : html`<section class="missing" aria-labelledby="missing">
          <h2 id="missing">${texts.refusedMissing}</h2>
          ${scopeList(model.missing, '')}
        </section>`;
  const event =
    model.eventId === undefined
      ? undefined
      : html`<p class="hint">${texts.refusedEvent} <code>${shown(model.eventId)}</code></p>`;
  return page(model.site, {
    title: heading,
    main: html`<div class="outcome">
      ${SIGNS[rule.sign]}
      <h1>${heading}</h1>
      <div role="status">
        <p class="lede">${words.meaning}</p>
        <p>${words.next}</p>
      </div>
      ${missing}
      <div class="buttons">${offer(rule, model)}</div>
      ${named?.link === undefined ? undefined : linkLasts(named.link.deadlineMs, named.link.nowMs)} ${event}
    </div>`,
  });
}
