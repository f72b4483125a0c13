/** A world whose tasks a test starts and follows through the engine, without a protocol in between. */
import { ownerOf } from '../../src/elicitation/owner.ts';
import type { Keyturn } from '../../src/app.ts';
import { defineJob, type JobDefinition } from '../../src/engine/define.ts';
import type { TaskCall, TaskSnapshot } from '../../src/engine/tasks.ts';
import { openWorld, type World, type WorldOptions } from '../../src/world.ts';

/** A client that shows links and forms. */
export const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };

/** Lengths that make a test short. */
export const QUICK = { leaseMs: 900, sweepEveryMs: 100, graceMs: 300 };

/** A job by its name and what it does. */
export const job = (
  name: string,
  run: JobDefinition['run'],
  more: Partial<JobDefinition> = {},
): JobDefinition => ({ ...defineJob({ name, description: name, run }), ...more });

export interface EngineRig {
  readonly world: World;
  caller(who?: string): { owner: string; clientId: string; scopes: string[] };
  start(tool: JobDefinition, more?: Partial<TaskCall>, who?: string): Promise<TaskSnapshot>;
  read(taskId: string, who?: string): Promise<TaskSnapshot | undefined>;
  /** Follows a task until it has a state. */
  until(taskId: string, status: TaskSnapshot['status'], who?: string): Promise<TaskSnapshot>;
}

/** Opens a world with these jobs. */
export async function openEngineRig(
  tools: readonly JobDefinition[],
  { config, ...more }: WorldOptions = {},
): Promise<EngineRig> {
  const world = await openWorld({
    ...more,
    tools,
    config: { timing: QUICK, log: { level: 'silent' }, ...config },
  });
  const caller = (who = 'alice') => ({
    owner: ownerOf({ issuer: world.sandbox.issuer.issuer, subject: who }),
    clientId: 'test',
    scopes: [],
  });
  return {
    world,
    caller,
    async start(tool, call = {}, who) {
      const { tasks } = world.keyturn.engine;
      return (await tasks.start(caller(who), { job: tool, args: {}, declared, ...call })).task;
    },
    read: (taskId, who) => world.keyturn.engine.tasks.read(caller(who), taskId),
    until: (taskId, status, who) => follow(world.keyturn, caller(who), taskId, status),
  };
}

async function follow(
  keyturn: Keyturn,
  caller: { owner: string; clientId: string; scopes: string[] },
  taskId: string,
  status: TaskSnapshot['status'],
): Promise<TaskSnapshot> {
  const giveUpAt = Date.now() + 20_000;
  for (let rev = -1; ;) {
    const task = await keyturn.engine.tasks.waitForChange(caller, taskId, {
      beyondRev: rev,
      timeoutMs: 1_000,
      signal: AbortSignal.timeout(1_000),
    });
    if (task === undefined) throw new Error('the task is unknown');
    if (task.status === status) return task;
    if (Date.now() > giveUpAt) throw new Error(`it stayed ${task.status}: ${task.statusMessage ?? ''}`);
    rev = task.rev;
  }
}
