/**
 * One prompt at a time: of several streams of this process that could show the same question, one does. When that
 * stream ends without an answer, the next one takes over. Processes do not know each other's streams: a person who
 * waits on two of them may be asked on both, and the first answer counts.
 */

/** What one stream knows of a question that it shows. */
interface Prompt {
  readonly stream: object;
  readonly wake: () => void;
  readonly others: Set<() => void>;
  /** What did not fit in the last answer, until it has been shown. */
  problems: readonly string[] | null;
}

/** Who shows what. */
export type Prompts = ReturnType<typeof openPrompts>;

export function openPrompts() {
  const shown = new Map<string, Prompt>();

  return {
    /**
     * Takes a question for a stream.
     *
     * @param wake called when there is news for the stream that shows it, or when it becomes free for one that does not.
     * @returns whether the stream shows it from now on.
     */
    take(name: string, stream: object, wake: () => void): boolean {
      const prompt = shown.get(name);
      if (prompt === undefined) {
        shown.set(name, { stream, wake, others: new Set(), problems: null });
        return true;
      }
      if (prompt.stream === stream) return true;
      prompt.others.add(wake);
      return false;
    },

    /** A stream is over, or has no use for the question any more. */
    release(name: string, stream: object, wake: () => void): void {
      const prompt = shown.get(name);
      if (prompt === undefined) return;
      if (prompt.stream !== stream) {
        prompt.others.delete(wake);
        return;
      }
      shown.delete(name);
      prompt.others.forEach((tell) => tell());
    },

    /** An answer did not fit: the stream that shows the question asks again. */
    misfit(name: string, problems: readonly string[]): void {
      const prompt = shown.get(name);
      if (prompt === undefined) return;
      prompt.problems = problems;
      prompt.wake();
    },

    /** What did not fit since the last look. */
    takeProblems(name: string, stream: object): readonly string[] | null {
      const prompt = shown.get(name);
      if (prompt?.stream !== stream) return null;
      const { problems } = prompt;
      prompt.problems = null;
      return problems;
    },

    /** How many questions are being shown. */
    size: (): number => shown.size,
  };
}
