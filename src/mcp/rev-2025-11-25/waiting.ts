/**
 * A wait that can be woken again and again, and ended once: gives a fresh signal for every round, because an aborted
 * signal stays aborted.
 */
export function openWaiting(end: AbortSignal) {
  let round = new AbortController();
  let woken = false;
  const wake = (): void => {
    woken = true;
    round.abort();
  };
  end.addEventListener('abort', wake, { once: true });

  return {
    /** Wakes the current round, or the next one at once. */
    wake,
    /** The signal of the next round. */
    next(): AbortSignal {
      round = new AbortController();
      if (woken || end.aborted) round.abort();
      woken = false;
      return round.signal;
    },
    end: (): void => end.removeEventListener('abort', wake),
  };
}
