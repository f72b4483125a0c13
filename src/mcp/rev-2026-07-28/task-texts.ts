/**
 * Texts of tasks as polls are answered with them: made once for a snapshot and what a request's client can show, kept
 * as long as the snapshot lives. Holds nothing that the snapshot does not.
 */
import type { TaskSnapshot } from '../../engine/tasks.ts';
import type { JsonObject } from '../json-rpc.ts';
import { detailedTask, type Reach } from './detailed-task.ts';

/** @param print makes the text of a result's fields. */
export function openTaskTexts(print: (fields: JsonObject) => string) {
  const texts = new WeakMap<TaskSnapshot, string[]>();
  return {
    textOf(task: TaskSnapshot, reach: Reach): string {
      let made = texts.get(task);
      if (made === undefined) {
        made = [];
        texts.set(task, made);
      }
      const at = (reach.form ? 1 : 0) + (reach.url ? 2 : 0) + (reach.linksAsText ? 4 : 0);
      return (made[at] ??= print(detailedTask(task, reach)));
    },
  };
}
