/**
 * Answers of clients to `elicitation/create`. An answer is acknowledged only after the ledger has it: what cannot be
 * taken is refused, never acknowledged and dropped. Errors of the client and unknown actions change nothing (D3).
 */
import type { Caller } from '../../engine/caller.ts';
import { readAskId } from './ask-id.ts';
import type { FirstQuestions } from './first-questions.ts';
import type { LegacyParts } from './parts.ts';

/** A JSON-RPC response, before anything of it is trusted. */
export interface Response {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Whether a message is a JSON-RPC response. */
export function isResponse(message: unknown): message is Response {
  return (
    typeof message === 'object' &&
    message !== null &&
    !('method' in message) &&
    'id' in message &&
    ('result' in message || 'error' in message)
  );
}

/** `taken`: the ledger knows it. `unknown`: it answers nothing that this caller was asked. */
export type Taken = 'taken' | 'unknown';

/**
 * Takes one response.
 *
 * @throws Refusal `store_unavailable`: not taken, the client may send it again.
 */
export async function takeAnswer(
  parts: Pick<LegacyParts, 'tasks' | 'prompts' | 'log'>,
  caller: Caller,
  first: FirstQuestions,
  response: Response,
): Promise<Taken> {
  const asked = readAskId(response.id);
  if (asked === undefined) return 'unknown';
  const answer = readAnswer(response);
  if (asked.kind === 'first') return first.answer(response.id as string, answer) ? 'taken' : 'unknown';
  const { taskId, key } = asked;
  if (answer === undefined) {
    parts.log.info('mcp.answer ignored', { taskId, key, why: 'error' });
    return (await parts.tasks.read(caller, taskId)) === undefined ? 'unknown' : 'taken';
  }
  const answered = await parts.tasks.answer(caller, taskId, new Map([[key, answer]]));
  if (answered === undefined) return 'unknown';
  const problems = answered.problems[key];
  if (problems !== undefined) parts.prompts.misfit(`${taskId} ${key}`, problems);
  return 'taken';
}

/** Action and content, or undefined for an error or a result of another shape. */
export function readAnswer(response: Response): { action: unknown; content: unknown } | undefined {
  const { result, error } = response;
  if (error !== undefined || typeof result !== 'object' || result === null) return undefined;
  const { action, content } = result as { action?: unknown; content?: unknown };
  return { action, content };
}
