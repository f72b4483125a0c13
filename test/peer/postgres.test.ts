/** Two nodes on one PostgreSQL: a task that one of them started is asked for, signed in for and resumed over both. */
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
    config: { ledger: { postgres: { env: 'LEDGER' } } },
    env: { LEDGER: server.connectionString.reveal() },
    logStream: { write: () => undefined },
  });
  other = await world.openNode();
});

afterAll(async () => {
  await other?.stop();
  await world?.close();
  await server?.stop();
});

test('a task goes from one node to a person and on to its end, with the ledger and the vault on PostgreSQL', async () => {
  const subject = world.sandbox.issuer.accounts.find((one) => one.id.includes('alice'))?.id ?? 'alice';
  const caller = {
    owner: ownerOf({ issuer: world.sandbox.issuer.issuer, subject }),
    clientId: 'test-client',
    scopes: [],
  };
  /** Waits on a node for what another node may bring about. */
  const until = async (node: Keyturn, taskId: string, status: string) => {
    for (let rev = -1; ;) {
      const task = await node.engine.tasks.waitForChange(caller, taskId, {
        beyondRev: rev,
        timeoutMs: 10_000,
        signal: AbortSignal.timeout(20_000),
      });
      if (task === undefined || task.status === status || task.rev === rev) return task;
      rev = task.rev;
    }
  };
  const job = importRecords(world.sandbox.providerSettings.recordsUrl) as JobDefinition;
  const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };
  const { task } = await other.engine.tasks.start(caller, { job, args: {}, declared });
  const waiting = await until(world.keyturn, task.taskId, 'input_required');
  const url = waiting?.inputs[0]?.url ?? '';
  expect(url).toContain('/connect/');
  const end = await openPerson().signInEverywhere(url, { as: 'alice' });
  expect(end.url).toContain('/outcome/');
  const done = await until(other, task.taskId, 'completed');
  expect(done?.outcome).toMatchObject({ kind: 'result', result: { structuredContent: { records: 1_000 } } });
  const kept = await other.ledger.readRecords('paperboat-records', caller.owner, {
    afterId: '',
    limit: 2_000,
  });
  expect(kept.map((row) => row.id)).toEqual([...recordIds()].toSorted());
});
