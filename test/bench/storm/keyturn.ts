/**
 * Keyturn in the storm: four processes on one SQLite ledger, one of them answering MCP. Every call is a `tools/call` of
 * an MCP client and becomes a task; each task holds its worker until all of them run, and only then meets the dead token.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { openKeyturn } from '../../../src/app.ts';
import { readConfig, type ConfigInput } from '../../../src/config.ts';
import { defineJob, text, type JobDefinition } from '../../../src/engine/define.ts';
import { openHost, type HostTask } from '../../../src/sandbox/mcp-client.ts';
import { openPerson } from '../../../src/sandbox/person.ts';
import { openSandbox } from '../../../src/sandbox/sandbox.ts';
import { generateKey } from '../../../src/vault/keyring.ts';
import { freePort, worldConfig } from '../../../src/world.ts';
import { refreshes, startContestant, tally, type StormResult } from './result.ts';

/** What a process is told. */
interface Order {
  readonly config: ConfigInput;
  readonly env: Record<string, string>;
  readonly apiUrl: string;
  /** Whether it answers MCP as well. */
  readonly listens: boolean;
}

/** A job that reads the API once, when it may. */
function readOnce(apiUrl: string, running: () => void, mayGo: Promise<void>): JobDefinition {
  return defineJob({
    name: 'read_once',
    description: 'Reads the API once.',
    input: z.object({ waits: z.boolean().default(false) }),
    requires: { paperboat: { scopes: ['records:read'] } },
    async run(job) {
      if (job.args.waits) {
        running();
        await mayGo;
      }
      const answer = await job.api('paperboat').get(apiUrl);
      if (answer.status !== 200) throw new Error(`the API answered ${answer.status}`);
      return text('read');
    },
  }) as JobDefinition;
}

async function serve({ config, env, apiUrl, listens }: Order): Promise<void> {
  const go = Promise.withResolvers<void>();
  process.once('message', () => go.resolve());
  const job = readOnce(apiUrl, () => process.send?.('runs'), go.promise);
  const keyturn = await openKeyturn(readConfig({ ...config, tools: [job] }), { env });
  if (listens) await keyturn.app.listen({ host: '127.0.0.1', port: config.listen?.port ?? 0 });
  keyturn.start();
  process.send?.('up');
}

/** Runs the storm. */
export async function keyturnStorm(calls: number, processes: number): Promise<StormResult> {
  const port = await freePort();
  const publicUrl = `http://localhost:${port}`;
  const mcpUrl = `${publicUrl}/mcp`;
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-storm-'));
  const sandbox = await openSandbox({ mcpResource: mcpUrl, keyturnPublicUrl: publicUrl });
  const { saas, issuer, providerSettings } = sandbox;
  const made = worldConfig({
    sandbox,
    publicUrl,
    port,
    folder,
    vaultKeys: generateKey().entry.reveal(),
  });
  const { tools: _, ...config } = made.config;
  let running = 0;
  const order: Order = {
    config: {
      ...config,
      log: { level: 'silent' },
      limits: {
        ...config.limits,
        workers: Math.ceil(calls / processes),
        runningPerOwner: calls,
        openPerOwner: calls + 1,
      },
    },
    env: made.env,
    apiUrl: providerSettings.recordsUrl,
    listens: false,
  };
  const nodes = await Promise.all(
    Array.from({ length: processes }, (__, node) =>
      startContestant(import.meta.filename, { ...order, listens: node === 0 }, () => (running += 1)),
    ),
  );
  const accessToken = await issuer.issueAccessToken({
    sub: 'alice',
    clientId: 'bench',
    scope: 'mcp:tools',
    resource: mcpUrl,
    expiresInSeconds: 600,
  });
  const host = await openHost({ mcpUrl, accessToken });

  // The one sign-in: of a person with a browser, at the real pages.
  const first = await host.start('read_once');
  const asked = await host.until(first.taskId, ['input_required']);
  const url = Object.values(asked.inputRequests ?? {})[0]?.params['url'];
  await openPerson().signInEverywhere(typeof url === 'string' ? url : '', { as: 'alice' });
  await host.until(first.taskId, ['completed']);

  saas.expireAccessTokens();
  const before = refreshes(saas.tokenCalls);
  const tasks = await Promise.all(
    Array.from({ length: calls }, () => host.start('read_once', { waits: true })),
  );
  while (running < calls) await pause(10);
  const startedAt = performance.now();
  for (const { child } of nodes) child.send('go');
  await settled(join(folder, 'keyturn.sqlite'));
  const wallMs = performance.now() - startedAt;

  // What the client is told: each task as it reads it.
  const ends: HostTask[] = [];
  for (const { taskId } of tasks) ends.push(await host.get(taskId));
  const failed = ends.filter(({ status }) => status !== 'completed');
  const result: StormResult = {
    who: `Keyturn, ${processes} processes: ${calls} × tools/call`,
    calls,
    tokenCalls: refreshes(saas.tokenCalls) - before,
    successes: calls - failed.length,
    errors: tally(
      failed.map(({ status, error }) => `${status}${error === undefined ? '' : ` ${error.code}`}`),
    ),
    signIns: ends.filter(({ status }) => status === 'input_required').length,
    wallMs,
  };
  await host.close();
  await Promise.all(nodes.map((node) => node.end()));
  await sandbox.close();
  rmSync(folder, { recursive: true, force: true });
  return result;
}

/** Waits until no task works, looking past the server: polls of hundreds of tasks would be a load of their own. */
async function settled(file: string): Promise<void> {
  const ledger = new DatabaseSync(file, { readOnly: true });
  const working = ledger.prepare(`SELECT count(*) AS n FROM tasks WHERE status = 'working'`);
  const giveUpAt = Date.now() + 30_000;
  while (working.get()?.['n'] !== 0 && Date.now() < giveUpAt) await pause(5);
  ledger.close();
}

if (process.argv[2] === '--serve') {
  process.once('message', (order) => void serve(order as Order));
  // A process never outlives the one that started it.
  process.once('disconnect', () => process.exit());
  if (!process.connected) process.exit();
}
