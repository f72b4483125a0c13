/**
 * When an answer counts as delivered (R24). HTTP has no receipt: a connection that the client has cut may still take an
 * answer. So a result counts only after its connection has stayed without an error for a while; until then the same
 * call joins the same task, and whoever repeats it gets the same result again, never a second run. A failure counts
 * at once: whoever repeats the call wants another try.
 */
import type { Socket } from 'node:net';

/** What to note once an answer counts as delivered. */
export interface Note {
  readonly answer: 'result' | 'failure';
  write(): Promise<void>;
}

/** Answers that have left and do not count yet. */
export type Deliveries = ReturnType<typeof openDeliveries>;

async function writeAll(notes: readonly Note[]): Promise<void> {
  await Promise.allSettled(notes.map((note) => note.write()));
}

export function openDeliveries(lingerMs: number) {
  const pending = new Set<() => Promise<void>>();

  return {
    /** Answers were handed to the operating system in full. */
    sent(socket: Pick<Socket, 'once' | 'off'>, notes: readonly Note[]): void {
      void writeAll(notes.filter((note) => note.answer === 'failure'));
      const results = notes.filter((note) => note.answer === 'result');
      if (results.length === 0) return;
      const settle = (): void => {
        clearTimeout(timer);
        socket.off('close', closed);
        pending.delete(count);
      };
      const count = async (): Promise<void> => {
        settle();
        await writeAll(results);
      };
      // A peer that is gone answers our bytes with a reset, which closes the connection with an error.
      const closed = (hadError: boolean): void => {
        if (hadError) settle();
      };
      const timer = setTimeout(() => void count(), lingerMs);
      timer.unref();
      socket.once('close', closed);
      pending.add(count);
    },

    /** Counts everything that is pending: the process ends, and later there is nobody to do it. */
    async flush(): Promise<void> {
      await Promise.all([...pending].map((count) => count()));
    },
  };
}
