/** One connection, many processes: who refreshes, and who gets on with it. */
import { fork, type ChildProcess } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';
import type { RefreshChildOrder, RefreshChildWord } from '../support/refresh-child.ts';
import { openRefreshRig, type RefreshRig } from '../support/refresh-rig.ts';

const PROCESSES = 4;
const JOBS = 200;

let rig: RefreshRig;
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  await rig.close();
});

async function openChild(tell: (word: RefreshChildWord) => void): Promise<ChildProcess> {
  const child = fork(new URL('../support/refresh-child.ts', import.meta.url), { execArgv: [] });
  children.push(child);
  const order: RefreshChildOrder = {
    config: rig.config,
    env: rig.env,
    apiUrl: rig.fake.settings.apiUrl,
  };
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the child ended with ${code}`)));
    child.on('message', (word: RefreshChildWord) => {
      if (word === 'up') resolve();
      tell(word);
    });
    child.send(order);
  });
  return child;
}

test.each<['over' | 'unknown']>([['over'], ['unknown']])(
  `${JOBS} jobs at once in ${PROCESSES} processes on one rotating token (end %s): exactly one refresh, and every job succeeds`,
  async (expiry) => {
    let running = 0;
    rig = await openRefreshRig({
      expiry,
      onRun: () => {
        running += 1;
      },
      limits: { workers: JOBS / PROCESSES, runningPerOwner: JOBS },
    });
    rig.fake.expireAccessTokens();
    // The answer is held until every job runs, so that all of them meet the dead token.
    const gate = rig.fake.gate('refresh');
    const ids = await Promise.all(Array.from({ length: JOBS }, () => rig.start()));
    const nodes = await Promise.all(
      // This process is one of them.
      Array.from({ length: PROCESSES - 1 }, () =>
        openChild((word) => {
          if (word === 'runs') running += 1;
        }),
      ),
    );
    await gate.reached;
    await expect.poll(() => running, { timeout: 20_000 }).toBe(JOBS);
    gate.open();
    const tasks = await Promise.all(ids.map((id) => rig.settled(id, 40_000)));
    expect(tasks.filter((task) => task.status === 'completed')).toHaveLength(JOBS);
    expect(rig.fake.count('refresh')).toBe(1);
    expect(await rig.connection()).toMatchObject({ status: 'active', generation: 2, doubtfulUses: 0 });
    await Promise.all(
      nodes.map(
        (node) =>
          new Promise((resolve) => {
            node.once('exit', resolve);
            node.send('stop');
          }),
      ),
    );
  },
);
