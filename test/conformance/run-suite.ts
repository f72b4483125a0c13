/** Runs the official conformance suite against a server, in a process of its own. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** One check of a scenario. */
export interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

export interface SuiteRun {
  /** 0 when nothing but expected failures failed. */
  readonly code: number | null;
  readonly output: string;
  readonly checks: readonly Check[];
}

const { resolve } = createRequire(import.meta.url);
const CLI = join(dirname(resolve('@modelcontextprotocol/conformance/package.json')), 'dist', 'index.js');

/** Runs `conformance server` with further arguments. */
export async function runSuite(url: string, ...args: readonly string[]): Promise<SuiteRun> {
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-suite-'));
  try {
    const child = spawn(process.execPath, [CLI, 'server', '--url', url, '-o', folder, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], NO_COLOR: '1' },
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const code = await new Promise<number | null>((ended, failed) => {
      child.on('error', failed);
      child.on('close', ended);
    });
    const checks = readdirSync(folder).flatMap(
      (scenario) => JSON.parse(readFileSync(join(folder, scenario, 'checks.json'), 'utf8')) as Check[],
    );
    return { code, output, checks };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
