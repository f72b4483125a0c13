import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Keyturn } from '../../src/app.ts';
import { ownerOf } from '../../src/elicitation/owner.ts';
import type { JobDefinition } from '../../src/engine/define.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { recordIds } from '../../src/sandbox/records.ts';
import { importRecords, openWorld, type World } from '../../src/world.ts';
import { openPostgresServer, type PostgresServer } from '../support/postgres.ts';

let server: PostgresServer;
let world: World;
let other: Keyturn;

beforeAll(async () => {
  server = await openPostgresServer();
  world = await openWorld({
    env: { DATABASE_URL: server.connectionString.reveal() },
    config: { ledger: { postgres: { env: 'DATABASE_URL' } }, log: { level: 'silent' } },
  });
  other = await world.openNode();
});

afterAll(async () => {
  await other.stop();
  await world.close();
  await server.stop();
});

const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };

test('a task started on one node is signed in through another, goes on wherever a worker is, and is read on both', async () => {
  const caller = {
    owner: ownerOf({ issuer: world.sandbox.issuer.issuer, subject: 'alice' }),
    clientId: 'test',
    scopes: [],
  };
  const until = async (node: Keyturn, taskId: string, status: string) => {
    for (let rev = -1; ;) {
      const task = await node.engine.tasks.waitForChange(caller, taskId, {
        beyondRev: rev,
        timeoutMs: 15_000,
        signal: AbortSignal.timeout(15_000),
      });
      if (task === undefined || task.status === status || task.rev === rev) return task;
      rev = task.rev;
    }
  };
  const job = importRecords(world.sandbox.providerSettings.recordsUrl) as JobDefinition;
  const { task } = await other.engine.tasks.start(caller, { job, args: {}, declared });
  const waiting = await until(other, task.taskId, 'input_required');
  const onFirst = await until(world.keyturn, task.taskId, 'input_required');
  expect(onFirst?.inputs[0]?.url).toBe(waiting?.inputs[0]?.url);

  // The pages are served by the first node.
  const end = await openPerson().signInEverywhere(waiting?.inputs[0]?.url ?? '', { as: 'alice' });
  expect(end.status).toBe(200);
  const [here, there] = await Promise.all([
    until(world.keyturn, task.taskId, 'completed'),
    until(other, task.taskId, 'completed'),
  ]);
  expect(here?.outcome).toMatchObject({ kind: 'result' });
  expect(there?.outcome).toEqual(here?.outcome);
  const kept = await other.ledger.readRecords('paperboat-records', caller.owner, {
    afterId: '',
    limit: 2_000,
  });
  expect(kept.map((row) => row.id)).toEqual([...recordIds()].toSorted());
});
