/**
 * How long a person's callback takes to become work again: from the arrival of the authorization response at
 * `/callback` to the task's next request at the provider's API, code exchange, account check and commit included.
 * Everything runs in this one process, on loopback, on SQLite with `synchronous=FULL`.
 *
 * `node test/bench/resume.ts [rounds]`
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { ownerOf } from '../../src/elicitation/owner.ts';
import { defineJob, text } from '../../src/engine/define.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld } from '../../src/world.ts';

const rounds = Number(process.argv[2] ?? 40);
let callbackAt = 0;
let apiAt = 0;

subscribe('http.server.request.start', (message) => {
  const { url = '' } = (message as { request: IncomingMessage }).request;
  if (url.startsWith('/callback/')) callbackAt = performance.now();
  if (url.startsWith('/api/records') && callbackAt > 0 && apiAt === 0) apiAt = performance.now();
});

const world = await openWorld({ config: { log: { level: 'silent' } } });
const { saas, providerSettings, issuer } = world.sandbox;
const { tasks } = world.keyturn.engine;
const job = defineJob({
  name: 'import_records',
  description: 'One request.',
  requires: { paperboat: { scopes: ['records:read'] } },
  run: async (one) => text(String((await one.api('paperboat').get(providerSettings.recordsUrl)).status)),
});
const caller = { owner: ownerOf({ issuer: issuer.issuer, subject: 'alice' }), clientId: 'bench', scopes: [] };
const declared = { tasks: true, modes: { form: true, url: true }, clientName: null };
const person = openPerson();
const times: number[] = [];

async function until(taskId: string, status: string) {
  for (let rev = -1; ;) {
    const task = await tasks.waitForChange(caller, taskId, {
      beyondRev: rev,
      timeoutMs: 5_000,
      signal: AbortSignal.timeout(5_000),
    });
    if (task === undefined || task.rev === rev) throw new Error(`no ${status}`);
    if (task.status === status) return task;
    rev = task.rev;
  }
}

for (let round = 0; round < rounds; round += 1) {
  saas.expireAccessTokens();
  saas.revokeGrants('alice@paperboat');
  callbackAt = 0;
  apiAt = 0;
  const { task } = await tasks.start(caller, { job, args: { round }, declared });
  const waiting = await until(task.taskId, 'input_required');
  apiAt = 0;
  await person.signInEverywhere(waiting.inputs[0]?.url ?? '', { as: 'alice' });
  await until(task.taskId, 'completed');
  times.push(apiAt - callbackAt);
}
await world.close();

times.sort((a, b) => a - b);
const at = (share: number) =>
  (times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0).toFixed(1);
process.stdout.write(
  `callback → next API request, ${rounds} rounds: p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, max ${at(1)} ms\n`,
);
