/**
 * Tools as data, apart from the code that runs them: a name, a schema, what is required. `defineTool` for what answers
 * at once, `defineJob` for what may have to wait and therefore runs as a durable task.
 */
import type { z } from 'zod';
import { Refusal } from '../errors.ts';
import type { CancelPolicy } from '../elicitation/answer.ts';
import type { FormContent, FormSchema } from '../elicitation/form.ts';
import type { Interaction, Json, Progress } from '../store/records.ts';
import type { Caller, Declared } from './caller.ts';

/** Content of a tool result, as MCP defines it. */
export type ContentBlock = { readonly type: string; readonly [name: string]: unknown };

/** A tool's result: MCP `CallToolResult`, without protocol fields. */
export interface ToolResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: { readonly [name: string]: unknown };
  readonly isError?: boolean;
}

/** A text as a tool result. */
export function text(words: string, extra: Omit<ToolResult, 'content'> = {}): ToolResult {
  return { content: [{ type: 'text', text: words }], ...extra };
}

/** What a job needs of one provider before it starts. */
export interface Requirement {
  readonly scopes?: readonly string[];
}

/** Hints for hosts (MCP `ToolAnnotations`). */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

interface Described<Input extends z.ZodObject> {
  /** 1–128 of `A–Z a–z 0–9 _ - .` (MCP, server/tools). */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** Arguments; an object. Fields may carry `x-mcp-header` through `.meta({ 'x-mcp-header': 'Name' })`. */
  readonly input?: Input;
  readonly annotations?: ToolAnnotations;
}

/** A question asked before a tool runs or a task exists, in form mode. */
export interface ToolCall<Args> {
  readonly args: Args;
  readonly caller: Caller;
  readonly declared: Declared;
  readonly signal: AbortSignal;
  /**
   * Answers of the client to questions asked in earlier legs of this call, by name.
   *
   * A tool that lacks one throws `askFirst(…)`; the face asks in the way of the client's revision and calls again.
   */
  readonly answers: ReadonlyMap<string, FormContent>;
  /** State that an earlier leg of this call left for this one; sealed on its way through the client. */
  readonly state: Json;
}

/** A tool that answers within its call. */
export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> extends Described<Input> {
  readonly kind: 'tool';
  run(call: ToolCall<z.output<Input>>): Promise<ToolResult> | ToolResult;
}

/** What came of the step before a task. */
export type Before = { readonly args?: Json } | { readonly refused: string };

/** A tool that runs as a durable task. */
export interface JobDefinition<Input extends z.ZodObject = z.ZodObject> extends Described<Input> {
  readonly kind: 'job';
  /** Access that is checked before the first page, so that the link comes at the start (preflight). */
  readonly requires?: Readonly<Record<string, Requirement>>;
  /**
   * `several`: the person may have more than one account at the provider that the job requires. The tool then takes an
   * argument `account`, and asks which one is meant where that is open.
   */
  readonly accounts?: 'one' | 'several';
  /**
   * `required`: only clients that declare tasks. `optional` (default): others get the same job through their own face.
   */
  readonly taskSupport?: 'required' | 'optional';
  readonly interaction?: Interaction;
  readonly onCancel?: CancelPolicy;
  /** The task ends when no client polls it for this long. No limit by default. */
  readonly hostLeaseMs?: number;
  /** How long a wait for a person lasts; the configuration's value by default. */
  readonly waitMs?: number;
  /**
   * What is settled before the task is created. Throws `askFirst(…)` to ask, returns to go on, perhaps with other arguments,
   * or says in words for the model why there is no task.
   */
  before?(call: ToolCall<z.output<Input>>): Promise<Before | undefined>;
  run(job: Job<z.output<Input>>): Promise<ToolResult>;
}

/** Either kind. */
export type AnyTool = ToolDefinition | JobDefinition;

/** What a running job holds. Its state is JSON; its term travels with every write. */
export interface Job<Args = unknown> {
  readonly taskId: string;
  readonly args: Args;
  readonly owner: string;
  /** The last checkpoint saved, or null at the very start. */
  readonly checkpoint: Json;
  /** Fires when the task is cancelled, ended or taken over. */
  readonly signal: AbortSignal;
  /** Access to a provider's API with the person's token: the only way to one, and the token is never seen. */
  api(provider: string, options?: { readonly account?: string; readonly scopes?: readonly string[] }): JobApi;
  /** Saves where the job is, together with records for a collection: both or neither. */
  save(
    checkpoint: Json,
    written?: { readonly collection: string; readonly rows: readonly { id: string; body: Json }[] },
  ): Promise<void>;
  /** Says how far the job is. Throttled; the last word always arrives. */
  progress(progress: Progress): void;
  /** Asks a question in form mode, and stops until it is answered. */
  ask(name: string, schema: FormSchema, message: string): Promise<FormContent>;
  /** Asks several questions at once. */
  askAll(
    questions: Readonly<Record<string, { schema: FormSchema; message: string }>>,
  ): Promise<Record<string, FormContent>>;
  /** Sleeps; for longer than a few seconds without a worker, resuming from the checkpoint. */
  sleep(ms: number): Promise<void>;
  /** Runs a child process in a group of its own that ends with the task. */
  spawn(command: string, args: readonly string[], options?: SpawnOptions): Promise<SpawnResult>;
}

/** Options of a child process. Its environment is only what is listed here, and `PATH` (R19). */
export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** Bytes kept of each output stream. */
  readonly maxOutputBytes?: number;
}

/** How a child process ended. */
export interface SpawnResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A provider's API, bound to the person's connection and to the provider's own origins. */
export interface JobApi {
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  get(url: string | URL): Promise<Response>;
  /** GET, parsed as JSON. Any status but 2xx is refused with `resource_refused`. */
  json(url: string | URL): Promise<Json>;
  /**
   * The address of the page after `answer`, as the provider's profile says that it is told, or undefined at the end.
   *
   * @throws Refusal `egress_forbidden` when it lies elsewhere than the page that was read.
   */
  readonly nextPage: (answer: Response, body: Json) => string | undefined;
}

/** Thrown by a tool that needs answers first. */
export class AskFirst extends Error {
  override readonly name = 'AskFirst';
  readonly questions: Readonly<Record<string, { schema: FormSchema; message: string }>>;
  readonly state: Json;

  constructor(
    questions: Readonly<Record<string, { schema: FormSchema; message: string }>>,
    state: Json = null,
  ) {
    super('questions are open');
    this.questions = questions;
    this.state = state;
  }
}

/** Asks before a tool runs: throw what this returns. */
export function askFirst(
  questions: Readonly<Record<string, { schema: FormSchema; message: string }>>,
  state: Json = null,
): AskFirst {
  return new AskFirst(questions, state);
}

/** A JSON-RPC error that a job or tool chooses to end with. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

function checkName(name: string): void {
  if (!NAME.test(name)) {
    throw new Refusal('configuration_invalid', {
      message: `tools.${name}: a name has 1 to 128 of A–Z, a–z, 0–9, "_", "-", "."`,
    });
  }
}

/** Defines a tool that answers at once. @throws Refusal `configuration_invalid`. */
export function defineTool<Input extends z.ZodObject>(
  definition: Omit<ToolDefinition<Input>, 'kind'>,
): ToolDefinition<Input> {
  checkName(definition.name);
  return { kind: 'tool', ...definition };
}

/** Defines a job that runs as a durable task. @throws Refusal `configuration_invalid`. */
export function defineJob<Input extends z.ZodObject>(
  definition: Omit<JobDefinition<Input>, 'kind'>,
): JobDefinition<Input> {
  checkName(definition.name);
  return { kind: 'job', ...definition };
}
