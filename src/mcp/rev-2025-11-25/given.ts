/**
 * Which links one session was given, so that it hears when they are done with (`notifications/elicitation/complete`
 * goes only to the client that was given the link) and is not given the same one again and again. Bounded: the oldest
 * are forgotten, and a forgotten one only costs a notification.
 */
const MOST = 200;

/** Links of a session. */
export type Given = ReturnType<typeof openGiven>;

export function openGiven() {
  const taskOf = new Map<string, string>();

  return {
    add(elicitationId: string, taskId: string): void {
      taskOf.delete(elicitationId);
      taskOf.set(elicitationId, taskId);
      if (taskOf.size <= MOST) return;
      const oldest = taskOf.keys().next();
      if (oldest.done !== true) taskOf.delete(oldest.value);
    },

    has: (elicitationId: string): boolean => taskOf.has(elicitationId),

    /** Takes the links of a task that are asked no longer; each is taken once. */
    takeDone(taskId: string, asked: readonly string[]): string[] {
      const done = [...taskOf]
        .filter(([id, task]) => task === taskId && !asked.includes(id))
        .map(([id]) => id);
      for (const id of done) taskOf.delete(id);
      return done;
    },
  };
}
