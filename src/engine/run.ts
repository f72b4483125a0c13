/**
 * One attempt of one worker at one task: from the claim to a stop, an end, a park or the loss of the term. Holds the
 * lease by heartbeats and trusts it only within its window; every write carries the term.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isRefusal, Refusal, TASK_ERROR_CODES, type TaskErrorReason } from '../errors.ts';
import { formProblems, type FormContent } from '../elicitation/form.ts';
import type { Log } from '../log.ts';
import { heartbeatEveryMs, trustedUntilMs } from '../task/lease.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Json, Outcome, Progress, Task } from '../store/records.ts';
import { refusalOutcome } from '../store/waits.ts';
import { accountOf, type Access } from './access.ts';
import type { Asking } from './asking.ts';
import { ProtocolError, type Job, type JobApi, type JobDefinition, type ToolResult } from './define.ts';
import type { Meter } from './meter.ts';
import type { EngineSettings } from './settings.ts';
import { runChild } from './spawn.ts';
import { Unwind, type Leave, type Want } from './unwind.ts';

/** What a run works with. */
export interface RunParts {
  readonly ledger: Ledger;
  readonly access: Access;
  readonly asking: Asking;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly meter: Meter;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** A run that can be told to leave. */
export interface Run {
  readonly task: Task;
  readonly done: Promise<void>;
  /** The term is gone: abort the work. */
  lose(): void;
  /** Leave at the next step and hand the task back at its checkpoint. */
  handBack(): void;
  /** Abort the work and hand the task back at its checkpoint. */
  interrupt(): void;
  /** Hand the task back at its checkpoint without the work, which does not listen. Never rejects. */
  abandon(): Promise<void>;
}

/** Progress is written at most this often. */
const TELL_EVERY_MS = 1_000;

/**
 * Starts a run. `done` never rejects.
 *
 * @param claimedAtMs when the claim was sent, on the clock of `nowMs`.
 */
export function startRun(
  parts: RunParts,
  definition: JobDefinition,
  claimed: Task,
  claimedAtMs: number,
): Run {
  const { ledger, access, asking, settings, log, meter, nowMs } = parts;
  const claim = { taskId: claimed.id, term: claimed.term };
  const aborter = new AbortController();
  let trustedUntil = trustedUntilMs(claimedAtMs, settings.leaseMs);
  let leave: Leave | undefined;
  // Whether the job has met its leave.
  let met = false;
  // The work is over and its last write is on its way: that the term ends by it is no loss.
  let closing = false;
  let lostAtMs: number | undefined;
  let checkpoint: Json = claimed.checkpoint;
  // Sleeps since the checkpoint: so many were over when the task was parked, and so many this run has met.
  let sleptBefore = claimed.timers;
  let sleeps = 0;
  const children = new Set<Promise<unknown>>();
  let progress: Progress | undefined;
  let told = { atMs: -Infinity, pending: false };

  function go(why: Leave): never {
    leave ??= why;
    met = true;
    throw new Unwind(leave);
  }

  /** Every step of a job passes here: a job that has to leave gets no further. */
  function step(): void {
    if (leave !== undefined) {
      met = true;
      throw new Unwind(leave);
    }
    if (nowMs() >= trustedUntil) {
      lose();
      throw new Unwind({ kind: 'lost' });
    }
  }

  function lose(): void {
    if (leave?.kind === 'lost' || closing) return;
    // What was about to happen under this term cannot happen any more.
    leave = { kind: 'lost' };
    lostAtMs ??= nowMs();
    aborter.abort(new Unwind(leave));
  }

  async function held(write: () => Promise<{ won: boolean }>): Promise<void> {
    const startedAtMs = nowMs();
    const { won } = await write();
    if (!won) {
      lose();
      throw new Unwind({ kind: 'lost' });
    }
    trustedUntil = trustedUntilMs(startedAtMs, settings.leaseMs);
  }

  const heartbeat = setInterval(() => void beat(), heartbeatEveryMs(settings.leaseMs));
  heartbeat.unref();

  async function beat(): Promise<void> {
    if (leave?.kind === 'lost') return;
    const startedAtMs = nowMs();
    const news = telling();
    try {
      const { won } = await ledger.renewClaim({ ...claim, leaseMs: settings.leaseMs, ...news });
      if (won) trustedUntil = trustedUntilMs(startedAtMs, settings.leaseMs);
      else if (leave === undefined) lose();
    } catch (error) {
      told.pending ||= news.progress !== undefined;
      log.warn('lease.renewal failed', { taskId: claim.taskId, error });
      if (nowMs() >= trustedUntil) lose();
    }
  }

  /** The part of a renewal that says how far the job is, if there is news. */
  function telling(): { progress?: Progress; statusMessage?: string } {
    if (!told.pending || progress === undefined) return {};
    told = { atMs: nowMs(), pending: false };
    return {
      progress: access.scrub(claimed, progress),
      statusMessage: access.scrubText(claimed, describe(definition, progress)),
    };
  }

  async function withAccess(
    work: () => Promise<Response>,
    want: (refusal: Refusal) => Want,
  ): Promise<Response> {
    for (let tries = 0; ; tries += 1) {
      step();
      try {
        const answer = await work();
        step();
        return answer;
      } catch (error) {
        step();
        if (isRefusal(error, 'connection_needs_sign_in', 'insufficient_scope')) {
          go({ kind: 'stop', wants: [want(error)] });
        }
        if (!isRefusal(error, 'provider_unavailable')) throw error;
        const facts = error.facts['retryAfterMs'];
        const delayMs = typeof facts === 'number' ? facts : Math.min(250 * 2 ** tries, 30_000);
        if (delayMs > settings.sitOutMs || tries >= 4) {
          go({ kind: 'park', delayMs: backOffMs(delayMs), why: 'trouble' });
        }
        await pause(delayMs, undefined, { signal: aborter.signal }).catch(() => undefined);
      }
    }
  }

  /** Grows with how long the trouble has lasted, so that a long outage is not hammered. */
  function backOffMs(atLeastMs: number): number {
    const since = claimed.troubledSinceMs;
    const lastedMs = since === null ? 0 : claimed.updatedAtMs - since;
    return Math.max(atLeastMs, Math.min(Math.max(1_000, lastedMs), 300_000));
  }

  /** A step of the job. One that the job does not wait for when it is left brings nobody down. */
  function taken<T>(work: () => Promise<T>): Promise<T> {
    const one = work();
    one.catch(() => undefined);
    return one;
  }

  const job: Job<Record<string, unknown>> = {
    taskId: claimed.id,
    args: claimed.args as Record<string, unknown>,
    owner: claimed.owner,
    get checkpoint() {
      return checkpoint;
    },
    signal: aborter.signal,

    api(provider, options = {}): JobApi {
      const scopes = options.scopes ?? definition.requires?.[provider]?.scopes ?? [];
      const account = options.account ?? accountOf(claimed, provider);
      const bound = access.bind({ task: claimed, provider, account, scopes, signal: aborter.signal });
      const fetch = (url: string | URL, init?: RequestInit) =>
        taken(() =>
          withAccess(
            () => bound.fetch(url, init),
            (refusal) => bound.want(refusal),
          ),
        );
      return {
        fetch,
        get: (url) => fetch(url),
        nextPage: bound.nextPage,
        json: (url) =>
          taken(async () => {
            const answer = await fetch(url);
            if (!answer.ok) {
              throw new Refusal('resource_refused', { facts: { provider, status: answer.status } });
            }
            return (await answer.json()) as Json;
          }),
      };
    },

    save: (next, written) =>
      taken(async () => {
        step();
        const known = access.scrub(claimed, next);
        await held(() =>
          ledger.saveCheckpoint({
            ...claim,
            leaseMs: settings.leaseMs,
            checkpoint: known,
            ...telling(),
            ...(written === undefined
              ? {}
              : { records: { ...written, rows: access.scrub(claimed, written.rows) } }),
          }),
        );
        checkpoint = known;
        sleptBefore = 0;
        sleeps = 0;
        step();
      }),

    progress(next) {
      progress = next;
      told.pending = true;
      if (nowMs() - told.atMs >= TELL_EVERY_MS && leave === undefined) void beat();
    },

    ask: (name, schema, message) =>
      taken(async () => {
        const answers = await job.askAll({ [name]: { schema, message } });
        return answers[name] ?? {};
      }),

    askAll: (questions) =>
      taken(async () => {
        step();
        for (const [name, { schema }] of Object.entries(questions)) {
          const problems = formProblems(schema);
          if (problems.length > 0) throw new TypeError(`ask("${name}"): ${problems.join('; ')}`);
        }
        const answered = await ledger.readAnswers(claimed.id);
        const contents: Record<string, FormContent> = {};
        const wants: Want[] = [];
        for (const [name, question] of Object.entries(questions)) {
          const answer = answered.findLast((one) => one.name === name && one.outcome === 'answered');
          if (answer?.content != null) contents[name] = answer.content;
          else wants.push({ kind: 'form', name, ...access.scrub(claimed, question) });
        }
        if (wants.length > 0) go({ kind: 'stop', wants });
        return contents;
      }),

    sleep: (ms) =>
      taken(async () => {
        step();
        sleeps += 1;
        // Short and long ones alike: a run that follows meets the same sleeps in the same order.
        if (sleeps <= sleptBefore) return;
        if (ms > settings.sitOutMs) go({ kind: 'park', delayMs: ms, why: 'timer', timers: sleeps });
        await pause(ms, undefined, { signal: aborter.signal }).catch(() => undefined);
        step();
      }),

    spawn: (command, args, options = {}) =>
      taken(async () => {
        step();
        const child = runChild(command, args, {
          ...options,
          signal: aborter.signal,
          killAfterMs: settings.killAfterMs,
        });
        children.add(child);
        const result = await child.finally(() => children.delete(child));
        step();
        return result;
      }),
  };

  async function work(): Promise<void> {
    try {
      // A claim whose answer was long on its way may be over already: ask before anything is done under it.
      if (nowMs() - claimedAtMs > heartbeatEveryMs(settings.leaseMs)) await beat();
      step();
      const wants = await access.preflight(claimed, definition);
      if (wants.length > 0) go({ kind: 'stop', wants });
      step();
      const outcome = asOutcome(await definition.run(job));
      // Told to leave at the next step, it ended without meeting one: its result counts.
      if (leave?.kind === 'park' && !met && !aborter.signal.aborted) leave = undefined;
      step();
      await endSteps();
      await finish(outcome);
    } catch (error) {
      await endSteps();
      await end(error);
    }
  }

  /** What the job began and did not wait for ends before anybody sees that the task is left. */
  async function endSteps(): Promise<void> {
    if (!aborter.signal.aborted) aborter.abort(new Unwind(leave ?? { kind: 'lost' }));
    await Promise.allSettled(children);
  }

  function asOutcome(result: ToolResult): Outcome {
    // A job without types may return anything; a task that has completed has a result.
    if (!Array.isArray((result as Partial<ToolResult> | undefined)?.content)) {
      throw new TypeError('a job returns a tool result: { content: [...] }');
    }
    return { kind: 'result', result: access.scrub(claimed, result as unknown as Json) };
  }

  /** The last word about progress arrives before the task is left. */
  async function tellLast(): Promise<void> {
    if (told.pending) await beat();
  }

  /** The write by which this run gives its term up itself. */
  async function close<T>(write: () => Promise<T>, lost: (written: T) => boolean): Promise<T> {
    closing = true;
    try {
      const written = await write();
      if (lost(written)) {
        closing = false;
        lose();
      }
      return written;
    } catch (error) {
      closing = false;
      throw error;
    }
  }

  async function finish(
    outcome: Outcome,
    statusMessage: string = outcome.kind === 'result'
      ? `${definition.title ?? definition.name}: done.`
      : outcome.message,
  ): Promise<void> {
    await tellLast();
    const { won } = await close(
      () => ledger.finishTask({ ...claim, outcome, statusMessage }),
      (written) => !written.won,
    );
    if (!won) return;
    meter.count('task_ended', {
      status: outcome.kind === 'result' ? 'completed' : 'failed',
      reason: outcome.kind === 'result' ? 'none' : outcome.reason,
    });
  }

  async function end(error: unknown): Promise<void> {
    const why = leave ?? (error instanceof Unwind ? error.leave : undefined);
    switch (why?.kind) {
      case 'stop':
        return stop(why.wants);
      case 'park': {
        if (why.why === 'trouble' && claimed.troubledSinceMs !== null) {
          const lastedMs = claimed.updatedAtMs - claimed.troubledSinceMs;
          if (lastedMs > settings.outageMs) {
            return finish(refusalOutcome('resource_refused', { outageMs: lastedMs }));
          }
        }
        await tellLast();
        await close(
          () =>
            ledger.parkTask({
              ...claim,
              ...why,
              ...(why.why === 'trouble' ? { statusMessage: WAITS_OUT } : {}),
            }),
          (written) => !written.won,
        );
        return undefined;
      }
      case 'lost':
        return undefined;
      case undefined:
        return fail(error);
    }
  }

  async function stop(wants: readonly Want[]): Promise<void> {
    const refused = asking.refusalOf(definition, claimed, wants);
    if (refused !== undefined) return finish(refused.outcome, refused.statusMessage);
    const needs = await asking.write(definition, wants);
    await tellLast();
    const stopped = await close(
      () =>
        ledger.stopTask({
          ...claim,
          needs,
          waitMs: definition.waitMs ?? settings.waitMs,
          statusMessage: asking.statusMessage(wants),
        }),
      (written) => written.kind === 'lost',
    );
    if (stopped.kind === 'stopped') {
      for (const want of wants) meter.count('task_stopped', { kind: want.kind });
      log.info('task.stopped', { taskId: claim.taskId, asked: stopped.asked.map((one) => one.name) });
    }
    // What was needed came while we judged it missing: go on from the checkpoint, under the same lease no more.
    if (stopped.kind === 'go on') await ledger.parkTask({ ...claim, delayMs: 0, why: 'shutdown' });
    return undefined;
  }

  async function fail(error: unknown): Promise<void> {
    if (error instanceof ProtocolError) {
      return finish({
        kind: 'error',
        code: error.code,
        message: access.scrubText(claimed, error.message),
        reason: 'protocol',
        facts: {},
      });
    }
    if (isRefusal(error) && error.reason in TASK_ERROR_CODES) {
      log.warn('task.refused', { taskId: claim.taskId, error });
      return finish(
        refusalOutcome(
          error.reason as TaskErrorReason,
          access.scrub(claimed, { ...error.facts } as Record<string, Json>),
        ),
      );
    }
    if (isRefusal(error, 'store_unavailable', 'vault_unavailable')) {
      // Nothing was lost: the lease lapses, or the next worker goes on from the checkpoint.
      log.error('task.interrupted', { taskId: claim.taskId, error });
      await ledger.parkTask({ ...claim, delayMs: 1_000, why: 'shutdown' });
      return undefined;
    }
    log.error('job.failed', { taskId: claim.taskId, tool: claimed.tool, error });
    return finish({
      kind: 'error',
      code: -32603,
      message: 'The job ended with an error of its own.',
      reason: 'job_failed',
      facts: {},
    });
  }

  const done = work()
    .catch((error: unknown) => log.error('run.failed', { taskId: claim.taskId, error }))
    .finally(() => {
      clearInterval(heartbeat);
      access.release(claimed);
      if (lostAtMs === undefined) return;
      const ms = nowMs() - lostAtMs;
      meter.time('teardown', ms, {});
      log.info('task.torn down', { taskId: claim.taskId, ms: Math.round(ms) });
    });

  return {
    task: claimed,
    done,
    lose,
    handBack() {
      leave ??= { kind: 'park', delayMs: 0, why: 'shutdown' };
    },
    interrupt() {
      leave ??= { kind: 'park', delayMs: 0, why: 'shutdown' };
      aborter.abort(new Unwind(leave));
    },
    async abandon() {
      log.warn('job.deaf', { taskId: claim.taskId, tool: claimed.tool });
      lose();
      clearInterval(heartbeat);
      try {
        await ledger.parkTask({ ...claim, delayMs: 0, why: 'shutdown' });
      } catch (error) {
        // The lease lapses by itself.
        log.error('task.interrupted', { taskId: claim.taskId, error });
      }
    },
  };
}

const WAITS_OUT = 'The provider does not answer properly at the moment. The work goes on by itself.';

function describe(definition: JobDefinition, { done, total, message }: Progress): string {
  const title = definition.title ?? definition.name;
  const share =
    done !== undefined && total !== undefined && total > 0
      ? ` ${Math.floor((100 * done) / total)} % (${done} of ${total})`
      : done === undefined
        ? ''
        : ` ${done}`;
  return `${title}:${share}${message === undefined ? '' : ` ${message}`}`;
}
