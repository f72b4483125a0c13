/**
 * Many calls at once on one expired refresh token that rotates, at a real authorization server (oidc-provider) that
 * takes a second use for theft and ends the whole grant: Keyturn and the npm package `fastmcp`, side by side in one run.
 * What is called of each stands at the head of `storm/keyturn.ts` and `storm/fastmcp.ts`. The two differ in who refreshes:
 * Keyturn's server does it for its tasks, `fastmcp` does it when an MCP client refreshes; a client that sends one refresh
 * at a time spares `fastmcp` the storm.
 *
 * `node test/bench/refresh-storm.ts [calls]`
 */
import { tokenEndpointStorm, toolCallStorm } from './storm/fastmcp.ts';
import { keyturnStorm } from './storm/keyturn.ts';
import type { StormResult } from './storm/result.ts';

const PROCESSES = 4;
const calls = Number(process.argv[2] ?? 200);

// Nothing here may outlive its welcome; processes that were started end with this one.
setTimeout(() => {
  process.stderr.write('the storm took too long\n');
  process.exit(1);
}, 57_000).unref();

function print(cells: readonly string[], last: string): void {
  const [who = '', ...numbers] = cells;
  process.stdout.write(`${who.padEnd(58)}${numbers.map((cell) => cell.padStart(14)).join('')}  ${last}\n`);
}

function show({ who, calls: all, tokenCalls, successes, errors, signIns, wallMs }: StormResult): void {
  const kinds = [...errors].map(([kind, count]) => `${count} ${kind}`).join(', ');
  print(
    [
      who,
      `${tokenCalls}`,
      `${successes} (${((100 * successes) / all).toFixed(1)} %)`,
      signIns === undefined ? 'not asked' : `${signIns}`,
      `${(wallMs / 1000).toFixed(2)} s`,
    ],
    kinds === '' ? 'none' : kinds,
  );
}

print(['', 'token calls', 'successes', 'new sign-ins', 'wall time'], 'errors');
show(await keyturnStorm(calls, PROCESSES));
show(await tokenEndpointStorm(10, 1));
show(await tokenEndpointStorm(calls, 1));
show(await tokenEndpointStorm(calls, PROCESSES));
show(await toolCallStorm(calls));
process.exit();
