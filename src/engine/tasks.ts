/**
 * The tasks as the protocol faces see them: start, read, answer, cancel, list, watch. One set of rules for all
 * revisions; a face only translates. Every call is held against the caller's ownership: for anyone else a task is
 * unknown (D13).
 */
import { randomBytes } from 'node:crypto';
import { Refusal } from '../errors.ts';
import { modeOf } from '../elicitation/kind.ts';
import type { FormSchema } from '../elicitation/form.ts';
import { argumentsDigest, type IdempotencyKey } from '../task/idempotency.ts';
import { hostLeaseRenewalMs } from '../task/lease.ts';
import { pollIntervalMs } from '../task/lifetime.ts';
import { isTerminal, type TaskStatus } from '../task/status.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Interaction, Json, Outcome, Progress } from '../store/records.ts';
import type { TaskView } from '../store/tasks.ts';
import type { Caller, Declared } from './caller.ts';
import type { JobDefinition } from './define.ts';
import type { Changes } from './changes.ts';
import type { Meter } from './meter.ts';

/** Something that the client should show to the person now. */
export interface InputRequest {
  /** Never reused within the task. */
  readonly key: string;
  readonly mode: 'url' | 'form';
  readonly message: string;
  /** The link, in URL mode. */
  readonly url: string | null;
  /** The form, in form mode. */
  readonly schema: FormSchema | null;
  /** Names the question on 2025-11-25; opaque. */
  readonly elicitationId: string;
  readonly deadlineMs: number;
}

/** A task at one instant, for its owner. */
export interface TaskSnapshot {
  readonly taskId: string;
  readonly tool: string;
  readonly status: TaskStatus;
  readonly statusMessage: string | null;
  readonly progress: Progress | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  /** Grows with every visible change. */
  readonly rev: number;
  /** Open questions that nobody has answered; accepted links are listed no more (D4). */
  readonly inputs: readonly InputRequest[];
  /** `elicitationId` of everything that is asked and not finished, answered by the client or not. */
  readonly asked: readonly string[];
  /** Whether questions are open at all, answered by the client or not. */
  readonly deadlineMs: number | null;
  readonly outcome: Outcome | null;
}

/** A call that becomes a task. */
export interface TaskCall {
  readonly job: JobDefinition;
  readonly args: Json;
  readonly declared: Declared;
  /** Requested lifetime; the engine never goes below what a wait needs nor above its own maximum. */
  readonly ttlMs?: number;
  /** A call may forbid what its job allows, never the other way round. */
  readonly interaction?: Interaction | undefined;
  readonly idempotency?: IdempotencyKey;
  /** W3C traceparent. */
  readonly trace?: string;
}

/** Limits and lengths. */
export interface TaskSettings {
  readonly openPerOwner: number;
  /** Due tasks over all owners above which new ones are refused. */
  readonly queueDepth: number;
  readonly defaultTtlMs: number;
  readonly maxTtlMs: number;
}

/** How links are made: any node computes the same (R13). */
export interface Links {
  /** URL of the page for a question. */
  urlFor(elicitationId: string, kid: string): Promise<string>;
}

/** The tasks of this server. */
export type Tasks = ReturnType<typeof openTasks>;

/** A reading of a task, with its links. */
interface Cached {
  readonly view: TaskView;
  readonly inputs: readonly InputRequest[];
  readonly readAtMs: number;
  /** The last snapshot made of it: the same object while nothing in it has changed. */
  last?: TaskSnapshot;
}

const CACHE_FOR_MS = 1_000;
const CACHED_TASKS = 10_000;
/** Before a host lease that is being renewed is looked at again. */
const RENEWAL_TAKES_MS = 50;

/** A fresh task id: 144 random bits, safe in a header (tasks extension, "Task ID unguessability"). */
export function newTaskId(): string {
  return `task_${randomBytes(18).toString('base64url')}`;
}

export function openTasks(options: {
  ledger: Ledger;
  links: Links;
  changes: Changes;
  settings: TaskSettings;
  meter: Meter;
  nowMs: () => number;
}) {
  const { ledger, links, changes, settings, meter, nowMs } = options;
  // What was read lately, dropped by every hint about the task: a poller that is faster than its interval costs no
  // read, and never sees anything older than a write of this node.
  const cache = new Map<string, Cached>();
  changes.onTask((taskId) => cache.delete(taskId));
  changes.onResync(() => cache.clear());
  let depth = { value: 0, readAtMs: -Infinity };
  let counting: Promise<void> | undefined;

  function remember(entry: Cached): void {
    if (cache.size >= CACHED_TASKS) {
      const oldest = cache.keys().next();
      if (oldest.done !== true) cache.delete(oldest.value);
    }
    cache.set(entry.view.task.id, entry);
  }

  /** A cached view holds until its own next lapse at most: time alone may end a task. */
  function stillTrue(entry: Cached, atMs: number): boolean {
    const age = atMs - entry.readAtMs;
    if (age < 0 || age >= CACHE_FOR_MS) return false;
    const { task } = entry.view;
    const then = entry.view.nowMs + age;
    const lapses = [
      task.deadlineMs,
      task.hostUntilMs,
      isTerminal(task.status) ? task.createdAtMs + task.ttlMs : null,
    ];
    return lapses.every((lapse) => lapse === null || then < lapse);
  }

  async function load(taskId: string): Promise<Cached | undefined> {
    const atMs = nowMs();
    const cached = cache.get(taskId);
    if (cached !== undefined && stillTrue(cached, atMs)) return cached;
    const generation = changes.generation(taskId);
    const view = await ledger.readTask(taskId);
    if (view === undefined) return undefined;
    const entry: Cached = { view, inputs: await inputsOf(view), readAtMs: atMs };
    // A write between the reading and now would make this entry old.
    if (changes.generation(taskId) === generation) remember(entry);
    return entry;
  }

  async function inputsOf(view: TaskView): Promise<InputRequest[]> {
    const unanswered = view.asked.filter((one) => one.answeredAtMs === null);
    return Promise.all(
      unanswered.map(async (one): Promise<InputRequest> => {
        const mode = modeOf(one.kind);
        return {
          key: one.key,
          mode,
          message: one.message,
          url: mode === 'url' && one.handleKid !== null ? await links.urlFor(one.id, one.handleKid) : null,
          schema: one.schema,
          elicitationId: one.id,
          deadlineMs: one.deadlineMs,
        };
      }),
    );
  }

  function snapshot(entry: Cached): TaskSnapshot {
    const { view, inputs } = entry;
    const { task } = view;
    const { done, total } = task.progress ?? {};
    const interval = pollIntervalMs({
      status: task.status,
      sinceChangeMs: view.nowMs + (nowMs() - entry.readAtMs) - task.updatedAtMs,
      unanswered: inputs.length > 0,
      ...(done !== undefined && total !== undefined && total > 0 ? { fraction: done / total } : {}),
    });
    if (entry.last?.pollIntervalMs === interval) return entry.last;
    entry.last = {
      taskId: task.id,
      tool: task.tool,
      status: task.status,
      statusMessage: task.statusMessage,
      progress: task.progress,
      createdAtMs: task.createdAtMs,
      updatedAtMs: task.updatedAtMs,
      ttlMs: task.ttlMs,
      pollIntervalMs: interval,
      rev: task.rev,
      inputs,
      asked: view.asked.map((one) => one.id),
      deadlineMs: task.deadlineMs,
      outcome: task.outcome,
    };
    return entry.last;
  }

  async function owned(caller: Caller, taskId: string): Promise<Cached | undefined> {
    const entry = await load(taskId);
    return entry?.view.task.owner === caller.owner ? entry : undefined;
  }

  /** When a task's host lease wants to be renewed, on the ledger's clock; never without such a lease. */
  function hostRenewalMs({ task }: TaskView): number {
    if (task.hostLeaseMs === null || task.hostUntilMs === null) return Infinity;
    return hostLeaseRenewalMs(task.hostUntilMs, task.hostLeaseMs);
  }

  function keepHost({ view, readAtMs }: Cached): void {
    // A reading from the cache is as old as it is.
    if (view.nowMs + (nowMs() - readAtMs) < hostRenewalMs(view)) return;
    cache.delete(view.task.id);
    void ledger.renewHostLease(view.task.id).catch(() => undefined);
  }

  /** Takes a place in the queue, if there is one. Between two counts, what was let in here counts as due. */
  async function takePlace(): Promise<boolean> {
    if (nowMs() - depth.readAtMs > 1_000) {
      counting ??= ledger
        .countTasks()
        .then(({ due }) => {
          depth = { value: due, readAtMs: nowMs() };
        })
        .finally(() => {
          counting = undefined;
        });
      await counting;
    }
    if (depth.value >= settings.queueDepth) return false;
    depth.value += 1;
    return true;
  }

  return {
    /**
     * Starts a task, or finds the one that the same call started (D7). Durable when it resolves.
     *
     * @throws Refusal `too_many_tasks` (facts: `retryAfterMs`), `idempotency_conflict`.
     */
    async start(caller: Caller, call: TaskCall): Promise<{ created: boolean; task: TaskSnapshot }> {
      const placed = await takePlace();
      const wanted = call.ttlMs ?? settings.defaultTtlMs;
      const creation = await ledger.createTask(
        {
          id: newTaskId(),
          owner: caller.owner,
          clientId: caller.clientId,
          clientName: call.declared.clientName,
          tool: call.job.name,
          args: call.args,
          ttlMs: Math.min(Math.max(wanted, 60_000), settings.maxTtlMs),
          modes: call.declared.modes,
          interaction: call.job.interaction === 'never' ? 'never' : (call.interaction ?? 'interactive'),
          onCancel: call.job.onCancel ?? 'cancel',
          hostLeaseMs: call.job.hostLeaseMs ?? null,
          trace: call.trace ?? null,
          statusMessage: `${call.job.title ?? call.job.name}: started.`,
          idempotency:
            call.idempotency === undefined
              ? null
              : { ...call.idempotency, digest: argumentsDigest(call.args) },
        },
        { openPerOwner: settings.openPerOwner, queueFull: !placed },
      );
      if (placed && creation.kind !== 'created') depth.value = Math.max(0, depth.value - 1);
      switch (creation.kind) {
        case 'created':
        case 'existing': {
          if (creation.kind === 'created') meter.count('task_started', { tool: call.job.name });
          const view = await load(creation.task.id);
          if (view === undefined) throw new Error('a task that was just written cannot be read');
          return { created: creation.kind === 'created', task: snapshot(view) };
        }
        case 'conflict':
          throw new Refusal('idempotency_conflict');
        case 'limit':
          throw new Refusal('too_many_tasks', {
            facts: { limit: 'owner', open: creation.open, retryAfterMs: 30_000 },
          });
        case 'queue full':
          throw new Refusal('too_many_tasks', { facts: { limit: 'queue', retryAfterMs: 5_000 } });
        case 'blocked':
          throw new Refusal('too_many_tasks', { facts: { limit: 'blocked', retryAfterMs: null } });
      }
    },

    /** A task of the caller, or undefined: unknown, foreign and forgotten look the same. Renews its host lease. */
    async read(caller: Caller, taskId: string): Promise<TaskSnapshot | undefined> {
      const view = await owned(caller, taskId);
      if (view === undefined) return undefined;
      keepHost(view);
      return snapshot(view);
    },

    /**
     * Takes answers to open questions. Unknown and answered keys are ignored; an empty map writes nothing.
     *
     * @returns problems of form contents by key, or undefined when the caller has no such task.
     */
    async answer(
      caller: Caller,
      taskId: string,
      answers: ReadonlyMap<string, { action: unknown; content: unknown }>,
    ): Promise<{ problems: Readonly<Record<string, readonly string[]>> } | undefined> {
      const view = await owned(caller, taskId);
      if (view === undefined) return undefined;
      keepHost(view);
      if (answers.size === 0) return { problems: {} };
      const answered = await ledger.answerTask(caller.owner, taskId, answers);
      return answered && { problems: answered.problems };
    },

    /**
     * Cancels a task of the caller. Ended ones stay as they are.
     *
     * @returns whether this call ended it, and the task after it; undefined when the caller has no such task.
     */
    async cancel(
      caller: Caller,
      taskId: string,
    ): Promise<{ cancelled: boolean; task: TaskSnapshot } | undefined> {
      const view = await owned(caller, taskId);
      if (view === undefined) return undefined;
      const won = await ledger.cancelTask(caller.owner, taskId, 'Cancelled by the client.');
      cache.delete(taskId);
      const after = await load(taskId);
      if (after === undefined) return undefined;
      return { cancelled: won.won, task: snapshot(after) };
    },

    /** One page of the tasks that the caller started through this client, oldest first. */
    async list(
      caller: Caller,
      page: { after: { createdAtMs: number; id: string } | null; limit: number },
    ): Promise<TaskSnapshot[]> {
      const tasks = await ledger.listTasks(caller.owner, caller.clientId, page);
      const views = await Promise.all(tasks.map((task) => load(task.id)));
      return views.filter((view): view is Cached => view !== undefined).map(snapshot);
    },

    /**
     * Waits until a task of the caller has changed beyond `rev`, or until time or patience is over.
     *
     * @returns the task as it is then; undefined when the caller has no such task.
     */
    async waitForChange(
      caller: Caller,
      taskId: string,
      wait: { beyondRev: number; timeoutMs: number; signal: AbortSignal },
    ): Promise<TaskSnapshot | undefined> {
      const untilMs = nowMs() + wait.timeoutMs;
      for (;;) {
        // Listening starts before the look, so that no change falls between.
        const changed = changes.next(taskId);
        try {
          const entry = await owned(caller, taskId);
          if (entry === undefined) return undefined;
          keepHost(entry);
          const { view } = entry;
          const leftMs = untilMs - nowMs();
          if (view.task.rev > wait.beyondRev || leftMs <= 0 || wait.signal.aborted) return snapshot(entry);
          // Time alone may end a task: look again then, in time to renew its host lease, and now and then in case a
          // hint was lost.
          const lapseMs = view.task.deadlineMs === null ? Infinity : view.task.deadlineMs - view.nowMs;
          const renewMs = Math.max(RENEWAL_TAKES_MS, hostRenewalMs(view) - view.nowMs);
          await changed.within(Math.max(1, Math.min(leftMs, lapseMs, renewMs, 5_000)), wait.signal);
        } finally {
          changed.stop();
        }
      }
    },

    /** Calls `tell` after every change of a task; returns what ends it. */
    watch(taskId: string, tell: () => void): () => void {
      return changes.watch(taskId, tell);
    },

    /** Notes that a result has reached its client (R24). */
    async delivered(taskId: string): Promise<void> {
      await ledger.markDelivered(taskId);
    },
  };
}
