/** What a storm on one refresh token cost, and how it is counted. */
import { fork, type ChildProcess } from 'node:child_process';
import type { TokenCall } from '../../../src/sandbox/saas.ts';

/** One contestant in one run. */
export interface StormResult {
  readonly who: string;
  readonly calls: number;
  /** Refreshes at the provider's token endpoint. */
  readonly tokenCalls: number;
  readonly successes: number;
  /** What the others were told, and how many of them. */
  readonly errors: ReadonlyMap<string, number>;
  /** How often a person was asked to sign in again; undefined where that is up to the client. */
  readonly signIns: number | undefined;
  /** From the moment when all calls are on their way to the last answer. */
  readonly wallMs: number;
}

/** Refreshes among the calls at a token endpoint. */
export function refreshes(calls: readonly TokenCall[]): number {
  return calls.filter(({ grantType }) => grantType === 'refresh_token').length;
}

/** How often each kind occurs. */
export function tally(kinds: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** A process of a contestant: it is up when it says so, and ends with this one. */
export interface Contestant {
  readonly child: ChildProcess;
  end(): Promise<void>;
}

/** Starts a file as a process, tells it what to be, and waits until it is up. */
export async function startContestant(
  file: string,
  order: unknown,
  told: (word: unknown) => void = () => undefined,
): Promise<Contestant> {
  const child = fork(file, ['--serve'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
    child.on('message', (word) => {
      if (word === 'up') resolve();
      else told(word);
    });
    child.send(order as object);
  });
  return {
    child,
    end: () =>
      new Promise((resolve) => {
        child.removeAllListeners('exit');
        child.once('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}
