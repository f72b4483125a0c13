/** `tools/call`: which tool, in which way, with which arguments. Each way of running has a file of its own. */
import { ProtocolError, text } from '../../engine/define.ts';
import type { JobDefinition, ToolDefinition, ToolResult } from '../../engine/define.ts';
import { isRefusal, type Reason } from '../../errors.ts';
import type { Json } from '../../store/records.ts';
import { readArguments } from '../catalogue.ts';
import type { Call } from './call.ts';
import {
  companionsListed,
  companionTaskId,
  isCompanion,
  taskCancel,
  taskStatus,
  type CompanionName,
} from './companion.ts';
import { createTask } from './create-task.ts';
import { withAnswers } from './first-questions.ts';
import { taskSupportOf } from './list-tools.ts';
import type { LegacyParts } from './parts.ts';
import { heldAnswer, plainCall } from './plain-call.ts';
import type { SessionState } from './session-state.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../json-rpc.ts';
import { RpcError } from './rpc-error.ts';

/** Parameters of `tools/call`. */
export interface CallToolParams {
  readonly name: string;
  readonly arguments?: unknown;
  readonly task?: { readonly ttl?: unknown } | undefined;
}

export async function callTool(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  params: CallToolParams,
): Promise<Record<string, unknown>> {
  const { name, task } = params;
  if (isCompanion(name) && companionsListed(parts, call.client)) {
    return await callCompanion(parts, state, call, name, params);
  }
  const tool = parts.catalogue.get(name)?.tool;
  if (tool === undefined) {
    throw new RpcError(INVALID_PARAMS, `Unknown tool: ${name}`, { reason: 'tool_unknown' });
  }
  const support = taskSupportOf(tool);
  if (task !== undefined && support === 'forbidden') {
    throw new RpcError(METHOD_NOT_FOUND, `${name} cannot be called as a task`);
  }
  if (task === undefined && support === 'required') {
    throw new RpcError(METHOD_NOT_FOUND, `${name} can only be called as a task`);
  }
  const args = readArguments(tool, params.arguments);
  if (!args.ok) {
    // With a task there is no tool result to carry the problem.
    const message = `Invalid arguments for ${name}: ${args.problems.join('; ')}`;
    if (task === undefined) return { ...text(message, { isError: true }) };
    throw new RpcError(INVALID_PARAMS, message, { reason: 'arguments_invalid' });
  }
  if (tool.kind === 'tool') return await runTool(parts, state, call, tool, args.args);

  const before = await askBefore(parts, state, call, tool, args.args);
  if ('result' in before) {
    if (task === undefined) return { ...before.result };
    throw new RpcError(INVALID_PARAMS, before.words, { reason: before.reason });
  }
  if (task !== undefined) return await createTask(parts, state, call, tool, before.args, task);
  return await plainCall(parts, state, call, tool, before.args);
}

async function runTool(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  tool: ToolDefinition,
  args: Json,
): Promise<Record<string, unknown>> {
  try {
    const legs = await withAnswers(state.first, call, async (answers, kept) =>
      tool.run({ ...toolCall(call, args), answers, state: kept }),
    );
    const result = legs.kind === 'done' ? legs.value : unanswered(legs.name);
    return scrubbed(parts, result);
  } catch (error) {
    if (error instanceof ProtocolError) {
      throw new RpcError(error.code, parts.scrubText(error.message));
    }
    if (error instanceof RpcError || isRefusal(error)) throw error;
    parts.log.error('tool.failed', { tool: tool.name, error });
    return { ...text('The tool ended with an error of its own.', { isError: true }) };
  }
}

/** What leaves is looked at once more: a tool's result is not kept, so nothing else has seen it (D15). */
function scrubbed(parts: LegacyParts, result: ToolResult): Record<string, unknown> {
  return JSON.parse(parts.scrubText(JSON.stringify(result))) as Record<string, unknown>;
}

function toolCall(call: Call, args: Json) {
  const { caller, client, signal } = call;
  const declared = { tasks: client.tasks, modes: client.modes, clientName: client.name };
  return { args: args as Record<string, unknown>, caller, declared, signal };
}

function unanswered(name: string): ToolResult {
  return text(`The question "${name}" was not answered, so nothing was done.`, { isError: true });
}

async function askBefore(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  job: JobDefinition,
  args: Json,
): Promise<{ args: Json } | { result: ToolResult; words: string; reason: Reason }> {
  if (job.before === undefined) return { args: args as Json };
  try {
    const legs = await withAnswers(state.first, call, async (answers, kept) =>
      job.before?.({ ...toolCall(call, args), answers, state: kept }),
    );
    if (legs.kind === 'unanswered') {
      const words = 'A question that comes before the task was not answered.';
      return { result: unanswered(legs.name), words, reason: 'authorization_declined' };
    }
    const before = legs.value ?? {};
    if ('refused' in before) {
      const result = text(before.refused, { isError: true });
      return { result, words: before.refused, reason: 'arguments_invalid' };
    }
    return { args: before.args ?? (args as Json) };
  } catch (error) {
    if (error instanceof ProtocolError) throw new RpcError(error.code, parts.scrubText(error.message));
    throw error;
  }
}

async function callCompanion(
  parts: LegacyParts,
  state: SessionState,
  call: Call,
  name: CompanionName,
  params: CallToolParams,
): Promise<Record<string, unknown>> {
  if (params.task !== undefined) {
    throw new RpcError(METHOD_NOT_FOUND, `${name} cannot be called as a task`);
  }
  const taskId = companionTaskId(params.arguments);
  switch (name) {
    case 'task_status':
      return { ...(await taskStatus(parts, call, taskId)) };
    case 'task_cancel':
      return { ...(await taskCancel(parts, call, taskId)) };
    case 'task_result':
      return await heldAnswer(parts, state, call, taskId, 'Call task_result again with the same taskId');
  }
}
