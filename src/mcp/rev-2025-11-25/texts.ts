/** Words for models and people where a client can show nothing else. Plain text results; pure. */
import { text, type ToolResult } from '../../engine/define.ts';
import type { InputRequest, TaskSnapshot } from '../../engine/tasks.ts';
import { linkLines } from '../delivery.ts';

function result(words: string): Record<string, unknown> {
  return { ...(text(words) satisfies ToolResult) };
}

/** The call was held long enough: the work goes on without it. */
export function runningText(task: TaskSnapshot, back: string): Record<string, unknown> {
  const said = task.statusMessage === null ? '' : ` ${task.statusMessage}`;
  return result(`Not finished yet.${said} The work goes on by itself. ${back} to get the result.`);
}

/** Links as text, where the operator allows it (D9). */
export function linksText(links: readonly InputRequest[], back: string): Record<string, unknown> {
  return result(`${linkLines(links)}\n\n${back} once that is done.`);
}
