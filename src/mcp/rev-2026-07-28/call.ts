/**
 * `tools/call` of this revision. One engine, two faces: clients that declare the tasks extension get a handle, others
 * are led through multi round-trips back to the same durable task (basic/patterns/mrtr). Decides what a call becomes;
 * says it in MCP's terms, and leaves the wire to its callers.
 */
import { isRefusal, Refusal } from '../../errors.ts';
import type { Caller, Declared } from '../../engine/caller.ts';
import {
  ProtocolError,
  text,
  type JobDefinition,
  type ToolDefinition,
  type ToolResult,
} from '../../engine/define.ts';
import type { TaskSnapshot, Tasks } from '../../engine/tasks.ts';
import type { FormContent } from '../../elicitation/form.ts';
import type { Log } from '../../log.ts';
import type { Json } from '../../store/records.ts';
import { explicitKey, implicitKey, LONGEST_KEY, type IdempotencyKey } from '../../task/idempotency.ts';
import { readArguments, type Catalogue } from '../catalogue.ts';
import { linkLines } from '../delivery.ts';
import { endingWords } from '../ending-words.ts';
import { INTERNAL_ERROR, type JsonObject, type WireError } from '../json-rpc.ts';
import { readInteraction } from '../interaction.ts';
import { paramHeaderProblem } from '../param-headers.ts';
import { outcomeError } from '../wire-error.ts';
import { askFirst, type Asked } from './ask-first.ts';
import { inputRequests, taskFields, toolResult, type Reach } from './detailed-task.ts';
import { missingCapability, missingTasks, type Envelope } from './envelope.ts';
import { holdLeg } from './legs.ts';
import { openState, sealState, type CallIdentity, type CallState, type StateSeal } from './request-state.ts';
import { mismatch } from './routing-headers.ts';
import { readInputResponses } from './task-methods.ts';

/** What calls are served with. */
export interface CallParts {
  readonly tasks: Tasks;
  readonly catalogue: Catalogue;
  readonly seal: StateSeal;
  /** How long one request waits for its task, in milliseconds. */
  readonly legMs: number;
  /** How long gathered answers are good, in milliseconds. */
  readonly askMs: number;
  readonly reachOf: (declared: Declared) => Reach;
  readonly wallMs: () => number;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly log: Log;
}

/** A call as it was sent. */
export interface Call {
  readonly caller: Caller;
  readonly envelope: Envelope;
  readonly params: JsonObject;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  /** Fires when nobody waits for the answer any more, or the server is closing. */
  readonly signal: AbortSignal;
  /** Takes what is to be done if the answer does not reach its client. */
  onLost(undo: () => Promise<void>): void;
  /** Takes what is to be done once the answer has left. */
  onSent(then: () => Promise<void>): void;
}

/** The answer to a call: a result of one of the three types, or an error. */
export type CallAnswer =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: WireError };

const IDEMPOTENCY_KEY = 'keyturn/idempotencyKey';
const NO_ANSWERS: ReadonlyMap<string, FormContent> = new Map();

/**
 * Answers a call.
 *
 * @throws Refusal `tool_unknown`, `arguments_invalid`, `request_state_invalid`, `idempotency_conflict`,
 *   `too_many_tasks` and what the stores throw.
 */
export async function callTool(parts: CallParts, call: Call): Promise<CallAnswer> {
  const { params, envelope, caller } = call;
  const name = params['name'];
  const entry = typeof name === 'string' ? parts.catalogue.get(name) : undefined;
  if (entry === undefined) throw new Refusal('tool_unknown');
  const { tool } = entry;
  const mirrored = paramHeaderProblem(entry.paramHeaders, params['arguments'], call.headers);
  if (mirrored !== undefined) return { kind: 'error', error: mismatch(mirrored) };
  if (tool.kind === 'job' && tool.taskSupport === 'required' && !envelope.declared.tasks) {
    return { kind: 'error', error: missingTasks() };
  }
  const verdict = readArguments(tool, params['arguments']);
  if (!verdict.ok) return said(text(verdict.problems.join('\n'), { isError: true }));
  const identity: CallIdentity = { caller, tool: tool.name, args: params['arguments'] ?? {} };
  const state =
    params['requestState'] === undefined
      ? undefined
      : await openState(parts.seal, identity, params['requestState'], parts.wallMs());
  const responses =
    params['inputResponses'] === undefined ? new Map() : readInputResponses(params['inputResponses']);
  const leg = { ...call, parts, identity, args: verdict.args, state, responses };
  return tool.kind === 'tool' ? runTool(leg, tool) : runJob(leg, tool);
}

/** A call with everything read from it. */
interface ReadCall extends Call {
  readonly parts: CallParts;
  readonly identity: CallIdentity;
  /** As the schema gave them, with defaults. */
  readonly args: Json;
  readonly state: CallState | undefined;
  readonly responses: ReadonlyMap<string, { action: unknown; content: unknown }>;
}

async function runTool(call: ReadCall, tool: ToolDefinition): Promise<CallAnswer> {
  if (call.state?.kind === 'task') throw new Refusal('request_state_invalid');
  const { caller, envelope, signal } = call;
  return guarded(call, async () => {
    const asked = await askFirst({
      modes: envelope.declared.modes,
      ...gathered(call.state),
      responses: call.responses,
      work: async (answers, state) =>
        tool.run({
          args: call.args as Record<string, unknown>,
          caller,
          declared: envelope.declared,
          signal,
          answers,
          state,
        }),
    });
    return asked.kind === 'done' ? said(asked.value) : ask(call, asked);
  });
}

async function runJob(call: ReadCall, job: JobDefinition): Promise<CallAnswer> {
  if (call.state?.kind === 'task') return goOn(call, call.state.taskId);
  if (job.before === undefined) return start(call, job, call.args);
  return guarded(call, async () => {
    const asked = await askFirst({
      modes: call.envelope.declared.modes,
      ...gathered(call.state),
      responses: call.responses,
      work: async (answers, state) =>
        job.before?.({
          args: call.args as Record<string, unknown>,
          caller: call.caller,
          declared: call.envelope.declared,
          signal: call.signal,
          answers,
          state,
        }),
    });
    if (asked.kind !== 'done') return ask(call, asked);
    const before = asked.value ?? {};
    if ('refused' in before) return said(text(before.refused, { isError: true }));
    return start(call, job, before.args ?? call.args);
  });
}

function gathered(state: CallState | undefined): { answers: ReadonlyMap<string, FormContent>; state: Json } {
  return state?.kind === 'asked' ? state : { answers: NO_ANSWERS, state: null };
}

/** Starts the task, or finds the one that the same call started (D7), and answers in the client's way. */
async function start(call: ReadCall, job: JobDefinition, args: Json): Promise<CallAnswer> {
  const { envelope, caller } = call;
  const { tasks } = call.parts;
  const named = readKey(call);
  const withHandle = envelope.declared.tasks;
  const interaction = readInteraction(envelope.meta);
  const idempotency = named ?? (withHandle ? undefined : implicitKey(args));
  const { created, task } = await tasks.start(caller, {
    job,
    args,
    declared: envelope.declared,
    interaction,
    ...(idempotency === undefined ? {} : { idempotency }),
    ...(envelope.trace === undefined ? {} : { trace: envelope.trace }),
  });
  // Until the client holds a handle, its going away cancels the call (D7). A key that it chose is such a handle.
  if (created && named === undefined) {
    call.onLost(async () => {
      await tasks.cancel(caller, task.taskId);
      await tasks.delivered(task.taskId);
    });
  }
  return withHandle ? handle(task) : lead(call, task.taskId, { fresh: created, problems: {} });
}

function handle(task: TaskSnapshot): CallAnswer {
  return { kind: 'result', result: { resultType: 'task', ...taskFields(task) } };
}

/** A later request of the same call: its answers reach the task, then it waits again. */
async function goOn(call: ReadCall, taskId: string): Promise<CallAnswer> {
  const { tasks } = call.parts;
  const answered = await tasks.answer(call.caller, taskId, call.responses);
  if (answered === undefined) throw new Refusal('request_state_invalid');
  if (!call.envelope.declared.tasks) return lead(call, taskId, { fresh: false, problems: answered.problems });
  const task = await tasks.read(call.caller, taskId);
  if (task === undefined) throw new Refusal('request_state_invalid');
  return handle(task);
}

/**
 * Waits one leg for the task and says what the client has to do next.
 *
 * @param so.fresh the task was started by this very request, so that its client has been given nothing yet.
 * @param so.problems what was wrong with answers that came with this request, by key.
 */
async function lead(
  call: ReadCall,
  taskId: string,
  so: { readonly fresh: boolean; readonly problems: Readonly<Record<string, readonly string[]>> },
): Promise<CallAnswer> {
  const { parts, caller, envelope, identity } = call;
  const leg = await holdLeg({
    ...parts,
    caller,
    taskId,
    reach: parts.reachOf(envelope.declared),
    givesLinks: so.fresh,
    signal: call.signal,
  });
  if (leg === undefined) throw new Refusal('request_state_invalid');
  if (leg.kind === 'ended') {
    call.onSent(() => parts.tasks.delivered(taskId));
    return ended(leg.task);
  }
  const { task } = leg;
  if (leg.kind === 'links') {
    // A result ends the call for its client; the same call again finds the task (D7).
    const back = `Call ${identity.tool} again with the same arguments once that is done.`;
    return said(text(`${linkLines(leg.links)}\n\n${back}`));
  }
  // The lifetime covers every deadline and the time to read back (D5).
  const expiresAtMs = task.createdAtMs + task.ttlMs;
  const requestState = await sealState(parts.seal, identity, { kind: 'task', taskId }, expiresAtMs);
  return {
    kind: 'result',
    result: {
      resultType: 'input_required',
      // Without questions the client comes back at once and waits for another leg.
      ...(leg.kind === 'asks' ? { inputRequests: inputRequests(leg.inputs, so.problems) } : {}),
      requestState,
    },
  };
}

/** The end of a task as the call itself would have been answered. */
function ended(task: TaskSnapshot): CallAnswer {
  const { outcome, statusMessage } = task;
  if (outcome?.kind === 'result') return { kind: 'result', result: complete(toolResult(outcome.result)) };
  if (outcome?.kind !== 'error') return said(text(statusMessage ?? 'Cancelled.', { isError: true }));
  if (outcome.reason === 'elicitation_unsupported') {
    const { requiredCapabilities } = outcome.facts;
    return {
      kind: 'error',
      error: missingCapability(
        (requiredCapabilities as JsonObject | undefined) ?? { elicitation: { url: {} } },
        endingWords(task, outcome),
      ),
    };
  }
  return { kind: 'error', error: { status: 200, ...outcomeError(task, outcome) } };
}

async function ask(call: ReadCall, asked: Exclude<Asked<unknown>, { kind: 'done' }>): Promise<CallAnswer> {
  switch (asked.kind) {
    case 'refused':
      return { kind: 'error', error: asked.error };
    case 'declined':
      return said(text(`The question "${asked.name}" was answered with ${asked.action}.`, { isError: true }));
    case 'ask': {
      const { parts } = call;
      const requestState = await sealState(
        parts.seal,
        call.identity,
        { kind: 'asked', answers: asked.answers, state: asked.state },
        parts.wallMs() + parts.askMs,
      );
      return {
        kind: 'result',
        result: { resultType: 'input_required', inputRequests: asked.inputRequests, requestState },
      };
    }
  }
}

/** Code of tools runs in here: what it throws is its own error, and leaves without its text. */
async function guarded(call: ReadCall, work: () => Promise<CallAnswer>): Promise<CallAnswer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) {
      return { kind: 'error', error: { status: 200, code: error.code, message: error.message } };
    }
    if (isRefusal(error)) throw error;
    call.parts.log.error('tool.failed', { tool: call.identity.tool, error });
    const message = 'The tool ended with an error of its own.';
    return {
      kind: 'error',
      error: { status: 200, code: INTERNAL_ERROR, message, data: { reason: 'job_failed' } },
    };
  }
}

function said(result: ToolResult): CallAnswer {
  return { kind: 'result', result: complete({ ...result }) };
}

function complete(result: JsonObject): JsonObject {
  return { ...result, resultType: 'complete' };
}

/** The key by which the client recognises its call (D7). @throws Refusal `arguments_invalid`. */
function readKey({ envelope, headers }: Call): IdempotencyKey | undefined {
  const inMeta = envelope.meta[IDEMPOTENCY_KEY];
  const inHeader = headers['idempotency-key'];
  const given = inMeta === undefined ? inHeader : inMeta;
  if (given === undefined) return undefined;
  const key = explicitKey(given);
  const field = inMeta === undefined ? 'Idempotency-Key' : `_meta["${IDEMPOTENCY_KEY}"]`;
  if (key === undefined) {
    throw new Refusal('arguments_invalid', {
      message: `${field}: must be a text of 1 to ${LONGEST_KEY} characters`,
    });
  }
  if (inMeta !== undefined && inHeader !== undefined && inMeta !== inHeader) {
    throw new Refusal('arguments_invalid', { message: `Idempotency-Key: differs from ${field}` });
  }
  return key;
}
