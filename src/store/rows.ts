/** Rows to records and back. JSON lives in text columns; flags are 0 or 1. */
import type { FormContent, FormSchema } from '../elicitation/form.ts';
import type { ElicitationKind } from '../elicitation/kind.ts';
import type { TaskStatus } from '../task/status.ts';
import type {
  Attempt,
  AttemptPhase,
  Connection,
  ConnectionStatus,
  Elicitation,
  Interaction,
  Json,
  Outcome,
  Progress,
  RefreshIntent,
  SealedGrant,
  Task,
} from './records.ts';

export interface TaskRow {
  id: string;
  owner: string;
  client_id: string;
  client_name: string | null;
  tool: string;
  args: string;
  status: TaskStatus;
  status_message: string | null;
  progress: string | null;
  checkpoint: string | null;
  outcome: string | null;
  created_at: number;
  updated_at: number;
  ttl_ms: number;
  term: number;
  rev: number;
  due_at: number | null;
  holder: string | null;
  lease_until: number | null;
  strikes: number;
  timers: number;
  troubled_since: number | null;
  deadline: number | null;
  modes: string;
  interaction: Interaction;
  on_cancel: 'cancel' | 'wait';
  host_lease_ms: number | null;
  host_until: number | null;
  trace: string | null;
}

/** Columns of a task that make its record. */
export const TASK_COLUMNS = `id, owner, client_id, client_name, tool, args, status, status_message, progress,
  checkpoint, outcome, created_at, updated_at, ttl_ms, term, rev, due_at, holder, lease_until, strikes, timers, troubled_since, deadline,
  modes, interaction, on_cancel, host_lease_ms, host_until, trace`;

function json<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}

export function toTask(row: TaskRow): Task {
  return {
    id: row.id,
    owner: row.owner,
    clientId: row.client_id,
    clientName: row.client_name,
    tool: row.tool,
    args: json<Json>(row.args),
    status: row.status,
    statusMessage: row.status_message,
    progress: json<Progress>(row.progress),
    checkpoint: json<Json>(row.checkpoint),
    outcome: json<Outcome>(row.outcome),
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    ttlMs: row.ttl_ms,
    term: row.term,
    rev: row.rev,
    dueAtMs: row.due_at,
    holder: row.holder,
    leaseUntilMs: row.lease_until,
    timers: row.timers,
    troubledSinceMs: row.troubled_since,
    deadlineMs: row.deadline,
    modes: JSON.parse(row.modes) as Task['modes'],
    interaction: row.interaction,
    onCancel: row.on_cancel,
    hostLeaseMs: row.host_lease_ms,
    hostUntilMs: row.host_until,
    trace: row.trace,
  };
}

export interface ElicitationRow {
  id: string;
  task_id: string;
  owner: string;
  client_id: string;
  input_key: string;
  name: string;
  kind: ElicitationKind;
  provider: string | null;
  connection_id: string | null;
  scopes: string;
  judged_generation: number | null;
  form: string | null;
  message: string;
  handle_hash: string | null;
  handle_kid: string | null;
  deadline: number;
  created_at: number;
  answered_at: number | null;
  action: 'accept' | 'decline' | 'cancel' | null;
  content: string | null;
  finished_at: number | null;
  outcome: string | null;
  reasks: number;
  force_consent: number;
  reask_at: number | null;
}

export function toElicitation(row: ElicitationRow): Elicitation {
  return {
    id: row.id,
    taskId: row.task_id,
    owner: row.owner,
    clientId: row.client_id,
    key: row.input_key,
    name: row.name,
    kind: row.kind,
    provider: row.provider,
    connectionId: row.connection_id,
    scopes: JSON.parse(row.scopes) as string[],
    judgedGeneration: row.judged_generation,
    schema: json<FormSchema>(row.form),
    message: row.message,
    handleKid: row.handle_kid,
    deadlineMs: row.deadline,
    createdAtMs: row.created_at,
    answeredAtMs: row.answered_at,
    action: row.action,
    content: json<FormContent>(row.content),
    finishedAtMs: row.finished_at,
    outcome: row.outcome,
    reasks: row.reasks,
    forceConsent: row.force_consent === 1,
    reaskAtMs: row.reask_at,
  };
}

export interface ConnectionRow {
  id: string;
  owner: string;
  provider: string;
  account: string;
  status: ConnectionStatus;
  status_reason: string | null;
  generation: number;
  record: string | null;
  intent: string | null;
  retry_at: number | null;
  failures: number;
  doubtful_uses: number;
  created_at: number;
  updated_at: number;
  last_used_at: number | null;
  signed_in_at: number | null;
}

export function toConnection(row: ConnectionRow): Connection {
  return {
    id: row.id,
    owner: row.owner,
    provider: row.provider,
    account: row.account,
    status: row.status,
    statusReason: row.status_reason,
    generation: row.generation,
    record: json<SealedGrant>(row.record),
    intent: json<RefreshIntent>(row.intent),
    retryAtMs: row.retry_at,
    failures: row.failures,
    doubtfulUses: row.doubtful_uses,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    lastUsedAtMs: row.last_used_at,
    signedInAtMs: row.signed_in_at,
  };
}

export interface AttemptRow {
  state_hash: string;
  id: string;
  elicitation_id: string;
  task_id: string;
  connection_id: string;
  owner: string;
  provider: string;
  sealed_verifier: string;
  nonce: string | null;
  redirect_uri: string;
  issuer: string;
  binding_hash: string;
  session_hash: string;
  scopes: string;
  tenant: string;
  any_account: number;
  record_key: string;
  phase: AttemptPhase;
  holder: string | null;
  lease_until: number | null;
  started_at: number;
  deadline: number;
  sealed: string | null;
  outcome: string | null;
}

export function toAttempt(row: AttemptRow): Attempt {
  return {
    stateHash: row.state_hash,
    id: row.id,
    elicitationId: row.elicitation_id,
    taskId: row.task_id,
    connectionId: row.connection_id,
    owner: row.owner,
    provider: row.provider,
    sealedVerifier: row.sealed_verifier,
    nonce: row.nonce,
    redirectUri: row.redirect_uri,
    issuer: row.issuer,
    bindingHash: row.binding_hash,
    sessionHash: row.session_hash,
    scopes: JSON.parse(row.scopes) as string[],
    tenant: JSON.parse(row.tenant) as Record<string, string>,
    anyAccount: row.any_account === 1,
    recordKey: row.record_key,
    phase: row.phase,
    holder: row.holder,
    leaseUntilMs: row.lease_until,
    startedAtMs: row.started_at,
    deadlineMs: row.deadline,
    sealed: json<SealedGrant>(row.sealed),
    outcome: json<NonNullable<Attempt['outcome']>>(row.outcome),
  };
}
