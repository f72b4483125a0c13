/**
 * A task in the words of MCP 2025-11-25 (basic/utilities/tasks, "Data Types"), and its end as the call that it stands
 * for would have ended. Pure. Some clients show nothing but the status message, so reason and advice are always in it.
 */
import type { ToolResult } from '../../engine/define.ts';
import type { TaskSnapshot } from '../../engine/tasks.ts';
import { isTerminal } from '../../task/status.ts';
import type { Outcome } from '../../store/records.ts';
import { ADVICE, endingWords } from '../ending-words.ts';
import { INTERNAL_ERROR } from '../json-rpc.ts';
import { RpcError } from './rpc-error.ts';

/** `_meta` key that ties a message to its task. */
const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** `_meta` of a message that belongs to a task. */
export function relatedTask(taskId: string): Record<string, { taskId: string }> {
  return { [RELATED_TASK]: { taskId } };
}

/** MCP `Task`. `ttl` and `pollInterval` are milliseconds. */
export interface WireTask {
  readonly taskId: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttl: number;
  readonly pollInterval: number;
  readonly [name: string]: unknown;
}

/** How a finished task answers the call that it stands for. */
export type Ending =
  | { readonly kind: 'result'; readonly result: ToolResult }
  | { readonly kind: 'error'; readonly error: RpcError };

/** The end of a task that has ended. */
export function endingOf(task: TaskSnapshot): Ending {
  const { outcome } = task;
  if (outcome?.kind === 'result') {
    return { kind: 'result', result: outcome.result as unknown as ToolResult };
  }
  if (outcome === null) {
    return {
      kind: 'error',
      error: new RpcError(4020, task.statusMessage ?? 'The task was cancelled.', {
        reason: 'task_cancelled',
        advice: ADVICE.task_cancelled,
      }),
    };
  }
  // A protocol error is what the job itself answers: as it is.
  if (outcome.reason === 'protocol') {
    return { kind: 'error', error: new RpcError(outcome.code, outcome.message) };
  }
  return {
    kind: 'error',
    error: new RpcError(outcome.code, endingWords(task, outcome), {
      ...outcome.facts,
      reason: outcome.reason,
      advice: ADVICE[outcome.reason],
    }),
  };
}

/** A tool's own failure ends a task as `failed` in this revision (D6). */
function statusOf(task: TaskSnapshot): WireTask['status'] {
  return task.status === 'completed' && isFailure(task.outcome) ? 'failed' : task.status;
}

function isFailure(outcome: Outcome | null): outcome is Extract<Outcome, { kind: 'result' }> {
  return outcome?.kind === 'result' && (outcome.result as { isError?: unknown } | null)?.['isError'] === true;
}

/** The status message: what is going on, why, and what to do about it. */
export function messageOf(task: TaskSnapshot): string | null {
  const { outcome, statusMessage } = task;
  if (task.status === 'input_required' && task.inputs.length > 0) {
    return `${statusMessage ?? 'Waiting for a person.'} Call tasks/result to receive the question.`;
  }
  if (isFailure(outcome)) return `The tool failed: ${firstText(outcome.result)}`;
  if (outcome?.kind !== 'error') return statusMessage;
  if (outcome.reason === 'protocol') return `${outcome.message} (code ${outcome.code})`;
  return `${endingWords(task, outcome)} (${outcome.reason}, code ${outcome.code})`;
}

function firstText(result: unknown): string {
  const { content } = result as ToolResult;
  const block = content.find((one) => one.type === 'text');
  const text = typeof block?.['text'] === 'string' ? block['text'] : 'it gave no reason.';
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** The task as `tasks/get`, `tasks/list`, `tasks/cancel` and the status notification carry it. */
export function wireTask(task: TaskSnapshot): WireTask {
  const statusMessage = messageOf(task);
  return {
    taskId: task.taskId,
    status: statusOf(task),
    ...(statusMessage === null ? {} : { statusMessage }),
    createdAt: new Date(task.createdAtMs).toISOString(),
    lastUpdatedAt: new Date(task.updatedAtMs).toISOString(),
    ttl: task.ttlMs,
    pollInterval: task.pollIntervalMs,
  };
}

/** The end of a task as the answer to a request: a result, or thrown. */
export function answerOf(task: TaskSnapshot): Record<string, unknown> {
  if (!isTerminal(task.status)) throw new RpcError(INTERNAL_ERROR, 'The task has not ended.');
  const ending = endingOf(task);
  if (ending.kind === 'error') throw ending.error;
  return { ...ending.result };
}
