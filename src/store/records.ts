/** The records of the ledger. Times are milliseconds on the ledger's clock; nothing here is a secret. */
import type { TaskErrorReason } from '../errors.ts';
import type { ElicitationModes } from '../elicitation/capability.ts';
import type { CancelPolicy } from '../elicitation/answer.ts';
import type { ElicitationKind } from '../elicitation/kind.ts';
import type { FormContent, FormSchema } from '../elicitation/form.ts';
import type { TaskStatus } from '../task/status.ts';
import type { IdempotencyKey } from '../task/idempotency.ts';

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** How far a job is, in its own words. */
export interface Progress {
  readonly done?: number;
  readonly total?: number;
  readonly message?: string;
}

/** How a task ended: the tool's result, or a JSON-RPC error. */
export type Outcome =
  | { readonly kind: 'result'; readonly result: Json }
  | {
      readonly kind: 'error';
      readonly code: number;
      readonly message: string;
      /** `protocol` marks an error that the job itself chose. */
      readonly reason: TaskErrorReason | 'job_failed' | 'protocol';
      readonly facts: { readonly [name: string]: Json };
    };

/** Whether a task may ask a person at all. */
export type Interaction = 'interactive' | 'never';

/** A durable task. */
export interface Task {
  readonly id: string;
  /** `ownerOf(person)`. */
  readonly owner: string;
  /** Verified `client_id` of the access token that started it. */
  readonly clientId: string;
  /** Self-reported name of the client: decoration. */
  readonly clientName: string | null;
  readonly tool: string;
  readonly args: Json;
  readonly status: TaskStatus;
  readonly statusMessage: string | null;
  readonly progress: Progress | null;
  readonly checkpoint: Json;
  readonly outcome: Outcome | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly ttlMs: number;
  /** Fencing number: +1 at every change of hands. */
  readonly term: number;
  /** Grows with every visible change. */
  readonly rev: number;
  readonly dueAtMs: number | null;
  readonly holder: string | null;
  readonly leaseUntilMs: number | null;
  /** Sleeps since the last checkpoint that are over: a job that runs again does not sleep them again. */
  readonly timers: number;
  /** Since when the provider has not answered properly, without a checkpoint in between. */
  readonly troubledSinceMs: number | null;
  readonly deadlineMs: number | null;
  /** What the creator of the task declared that it can show (D9). */
  readonly modes: ElicitationModes;
  readonly interaction: Interaction;
  readonly onCancel: CancelPolicy;
  readonly hostLeaseMs: number | null;
  readonly hostUntilMs: number | null;
  /** W3C traceparent of the call that started it. */
  readonly trace: string | null;
}

/** What a task is created from. */
export interface NewTask {
  readonly id: string;
  readonly owner: string;
  readonly clientId: string;
  readonly clientName: string | null;
  readonly tool: string;
  readonly args: Json;
  readonly ttlMs: number;
  readonly modes: ElicitationModes;
  readonly interaction: Interaction;
  readonly onCancel: CancelPolicy;
  readonly hostLeaseMs: number | null;
  readonly trace: string | null;
  readonly statusMessage: string;
  readonly idempotency: (IdempotencyKey & { readonly digest: string }) | null;
}

/** A question to a person. Its `key` is never reused within its task. */
export interface Elicitation {
  readonly id: string;
  readonly taskId: string;
  readonly owner: string;
  readonly clientId: string;
  readonly key: string;
  /** What is needed, the same for an ask and its re-asks. */
  readonly name: string;
  readonly kind: ElicitationKind;
  readonly provider: string | null;
  readonly connectionId: string | null;
  readonly scopes: readonly string[];
  /** The token generation that was judged dead; null when none was. */
  readonly judgedGeneration: number | null;
  readonly schema: FormSchema | null;
  readonly message: string;
  /** Key id under which the link handle is computed; null for forms. */
  readonly handleKid: string | null;
  readonly deadlineMs: number;
  readonly createdAtMs: number;
  readonly answeredAtMs: number | null;
  readonly action: 'accept' | 'decline' | 'cancel' | null;
  readonly content: FormContent | null;
  readonly finishedAtMs: number | null;
  /** `granted`, `answered`, `short` (too few scopes), `superseded`, `ended`. */
  readonly outcome: string | null;
  readonly reasks: number;
  readonly forceConsent: boolean;
  readonly reaskAtMs: number | null;
}

/** Something that only a person can give, as a stop writes it down. */
export interface Need {
  /** Identifier of the new elicitation. */
  readonly id: string;
  readonly name: string;
  readonly kind: ElicitationKind;
  readonly provider: string | null;
  readonly connectionId: string | null;
  readonly scopes: readonly string[];
  readonly judgedGeneration: number | null;
  readonly schema: FormSchema | null;
  readonly message: string;
  readonly forceConsent: boolean;
  /** The link: the hash is for look-up, the key id to compute the handle again. Null for forms. */
  readonly link: Link | null;
}

/** What the ledger keeps of a link (R13). */
export interface Link {
  readonly handleHash: string;
  readonly kid: string;
}

/** Phases of an attempt (R6). */
export type AttemptPhase = 'started' | 'exchanging' | 'exchanged' | 'granted' | 'refused' | 'lost';

/** One press of *Continue*. */
export interface Attempt {
  readonly stateHash: string;
  /** Names the attempt on pages; not a secret, and useless without the session of its person. */
  readonly id: string;
  readonly elicitationId: string;
  readonly taskId: string;
  readonly connectionId: string;
  readonly owner: string;
  readonly provider: string;
  /** PKCE verifier, sealed. */
  readonly sealedVerifier: string;
  readonly nonce: string | null;
  readonly redirectUri: string;
  readonly issuer: string;
  /** Hash of the per-attempt cookie. */
  readonly bindingHash: string;
  /** Hash of the browser session in which *Continue* was pressed (R12). */
  readonly sessionHash: string;
  readonly scopes: readonly string[];
  readonly tenant: { readonly [name: string]: string };
  readonly anyAccount: boolean;
  /** Vault key that the answer will be sealed under. */
  readonly recordKey: string;
  readonly phase: AttemptPhase;
  readonly holder: string | null;
  readonly leaseUntilMs: number | null;
  readonly startedAtMs: number;
  readonly deadlineMs: number;
  /** Token set as sealed, once `exchanged`. */
  readonly sealed: SealedGrant | null;
  /** What the page says; a reason of `errors.ts` or `granted`. */
  readonly outcome: { readonly reason: string; readonly facts: { readonly [name: string]: Json } } | null;
}

/** What the ledger knows of a sealed token set: where it is and what it is good for, never the tokens. */
export interface SealedGrant {
  readonly recordKey: string;
  readonly digest: string;
  readonly kid: string;
  /** Generation that the record is bound to. */
  readonly sealedGeneration: number;
  readonly kind: 'tokens' | 'credential';
  readonly scopes: readonly string[];
  readonly expiresAtMs: number | null;
  readonly refreshable: boolean;
  readonly captured: { readonly [name: string]: string };
  readonly subject: string | null;
  readonly subjectLabel: string | null;
}

/** State of a connection. */
export type ConnectionStatus = 'active' | 'needs_sign_in' | 'revoked';

/** A person's access at a provider. */
export interface Connection {
  readonly id: string;
  readonly owner: string;
  readonly provider: string;
  /** Name of the account among several of one provider; `default` when there is one. */
  readonly account: string;
  readonly status: ConnectionStatus;
  /** Why a person has to sign in again: a reason of `errors.ts`. */
  readonly statusReason: string | null;
  /** Counts token sets; only a new token set changes it (R2). */
  readonly generation: number;
  readonly record: SealedGrant | null;
  readonly intent: RefreshIntent | null;
  /** No refresh before this instant (back-off). */
  readonly retryAtMs: number | null;
  readonly failures: number;
  /** Uses of the current refresh token whose answer never arrived (R2). */
  readonly doubtfulUses: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly lastUsedAtMs: number | null;
  /** When a person last signed in at the provider. */
  readonly signedInAtMs: number | null;
}

/** Written before a refresh token is redeemed. */
export interface RefreshIntent {
  readonly holder: string;
  readonly untilMs: number;
  readonly recordKey: string;
  readonly generation: number;
}

/** A row of the audit log. */
export interface AuditEvent {
  readonly event: string;
  readonly owner: string | null;
  readonly clientId?: string | null;
  readonly taskId?: string | null;
  readonly connectionId?: string | null;
  readonly outcome: string;
  readonly facts?: { readonly [name: string]: Json };
}
