/**
 * Progress notifications (MCP 2025-11-25, basic/utilities/progress): the value grows with every one, also when the
 * work says nothing new, because a growing value is what keeps some clients waiting.
 */
import type { Progress } from '../../store/records.ts';
import type { Call } from './call.ts';

/** Values that always grow. */
export function growing(): (progress: Progress | null) => { progress: number; total?: number } {
  let last = -1;
  let beats = 0;
  let doneBefore: number | undefined;
  return (said) => {
    const done = said?.done;
    beats = done === doneBefore ? beats + 1 : 0;
    doneBefore = done;
    // Within one step of the work it grows towards the next step and never reaches it.
    const wanted = done === undefined ? beats : done + beats / (beats + 1);
    last = wanted > last ? wanted : last + 1 / (beats + 1);
    const total = said?.total;
    return { progress: last, ...(total !== undefined && total >= last ? { total } : {}) };
  };
}

/** Tells a client how far a task is. Without a token it says nothing. */
export function openProgress(call: Pick<Call, 'send'>, tokens: readonly (string | number)[]) {
  const next = growing();
  return async (progress: Progress | null, message: string | null): Promise<void> => {
    if (tokens.length === 0) return;
    const value = next(progress);
    for (const progressToken of new Set(tokens)) {
      const params = { progressToken, ...value, ...(message === null ? {} : { message }) };
      await call.send({ method: 'notifications/progress', params });
    }
  };
}
