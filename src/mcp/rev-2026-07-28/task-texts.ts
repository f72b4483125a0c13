/**
 * Texts of tasks as polls are answered with them: made once for a snapshot and the modes that a request declared, kept
 * as long as the snapshot lives. Holds nothing that the snapshot does not.
 */
import type { ElicitationModes } from '../../elicitation/capability.ts';
import type { TaskSnapshot } from '../../engine/tasks.ts';
import type { JsonObject } from '../json-rpc.ts';
import { detailedTask } from './detailed-task.ts';

/** @param print makes the text of a result's fields. */
export function openTaskTexts(print: (fields: JsonObject) => string) {
  const texts = new WeakMap<TaskSnapshot, string[]>();
  return {
    textOf(task: TaskSnapshot, modes: ElicitationModes): string {
      let made = texts.get(task);
      if (made === undefined) {
        made = [];
        texts.set(task, made);
      }
      const at = (modes.form ? 1 : 0) + (modes.url ? 2 : 0);
      return (made[at] ??= print(detailedTask(task, modes)));
    },
  };
}
