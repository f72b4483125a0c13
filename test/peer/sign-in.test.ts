import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownerOf } from '../../src/elicitation/owner.ts';
import type { JobDefinition } from '../../src/engine/define.ts';
import { recordIds } from '../../src/sandbox/records.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { importRecords, openWorld, type World } from '../../src/world.ts';

let world: World;
const lines: string[] = [];

beforeAll(async () => {
  world = await openWorld({ logStream: { write: (line) => void lines.push(line) } });
});

afterAll(async () => {
  await world.close();
});

const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };

function caller(who: string) {
  const subject = world.sandbox.issuer.accounts.find((one) => one.id.includes(who))?.id ?? who;
  return {
    owner: ownerOf({ issuer: world.sandbox.issuer.issuer, subject }),
    clientId: 'test-client',
    scopes: [],
  };
}

async function until(who: string, taskId: string, status: string) {
  const { tasks } = world.keyturn.engine;
  for (let rev = -1; ;) {
    const task = await tasks.waitForChange(caller(who), taskId, {
      beyondRev: rev,
      timeoutMs: 10_000,
      signal: AbortSignal.timeout(10_000),
    });
    if (task === undefined || task.status === status || task.rev === rev) return task;
    rev = task.rev;
  }
}

test('a task stops for a sign-in, the person signs in across three sites, and it goes on to its end', async () => {
  const job = importRecords(world.sandbox.providerSettings.recordsUrl) as JobDefinition;
  const { task } = await world.keyturn.engine.tasks.start(caller('alice'), { job, args: {}, declared });
  const waiting = await until('alice', task.taskId, 'input_required');
  expect(waiting?.status).toBe('input_required');
  const url = waiting?.inputs[0]?.url ?? '';
  expect(url).toMatch(/^http:\/\/localhost:\d+\/connect\/[\w-]+$/);

  const person = openPerson();
  const end = await person.signInEverywhere(url, { as: 'alice' });
  expect(end.status).toBe(200);
  expect(end.url).toContain('/outcome/');

  const done = await until('alice', task.taskId, 'completed');
  expect(done?.outcome).toMatchObject({ kind: 'result', result: { structuredContent: { records: 1_000 } } });
  const kept = await world.keyturn.ledger.readRecords('paperboat-records', caller('alice').owner, {
    afterId: '',
    limit: 2_000,
  });
  expect(kept.map((row) => row.id)).toEqual([...recordIds()].toSorted());
});
