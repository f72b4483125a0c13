/**
 * Child processes of a job: each leads a process group of its own, which ends with the task, grandchildren included.
 * Only the listed environment is passed on (R19).
 */
import { spawn } from 'node:child_process';
import type { SpawnOptions, SpawnResult } from './define.ts';

const MOST_OUTPUT_BYTES = 1_048_576;

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

/**
 * Runs a command until it ends or the signal fires: then SIGTERM to the group, and SIGKILL after `killAfterMs`. It
 * resolves only when the leader has gone, so that a teardown that has ended has left no process of the group. A process
 * that left the group (a daemon) is out of reach; its hold on the pipes ends after `killAfterMs`.
 */
export function runChild(
  command: string,
  args: readonly string[],
  options: SpawnOptions & { signal: AbortSignal; killAfterMs: number },
): Promise<SpawnResult> {
  const most = options.maxOutputBytes ?? MOST_OUTPUT_BYTES;
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], {
      cwd: options.cwd,
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...options.env },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    const size = { stdout: 0, stderr: 0 };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (chunk: Buffer) => {
        if (size[name] < most) output[name].push(chunk.subarray(0, most - size[name]));
        size[name] += chunk.length;
      });
    }
    let later: NodeJS.Timeout | undefined;
    const end = (): void => {
      const { pid } = child;
      if (pid === undefined) return;
      kill(pid, 'SIGTERM');
      later = setTimeout(() => kill(pid, 'SIGKILL'), options.killAfterMs);
    };
    const settle = (): void => {
      clearTimeout(later);
      options.signal.removeEventListener('abort', end);
    };
    child.once('error', (error) => {
      settle();
      reject(error);
    });
    child.once('close', (code) => {
      settle();
      const textOf = (name: 'stdout' | 'stderr') => Buffer.concat(output[name]).toString('utf8');
      resolve({ code, stdout: textOf('stdout'), stderr: textOf('stderr') });
    });
    child.once('exit', () => {
      settle();
      // Whatever the leader left behind goes with it.
      if (child.pid !== undefined) kill(child.pid, 'SIGKILL');
      // `close` waits for the pipes, which a process outside the group may hold open.
      later = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, options.killAfterMs);
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
    if (options.signal.aborted) end();
    else options.signal.addEventListener('abort', end, { once: true });
  });
}
