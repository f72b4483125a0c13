/** The engine: everything that makes durable work move, put together. Nothing here knows HTTP or MCP. */
import type { Log } from '../log.ts';
import type { Egress } from '../provider/egress.ts';
import type { SecretsInUse } from '../secrets-in-use.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Task } from '../store/records.ts';
import type { Keyring } from '../vault/keyring.ts';
import type { Vault } from '../vault/vault.ts';
import { openAccess } from './access.ts';
import { openAsking } from './asking.ts';
import { openChanges } from './changes.ts';
import type { AnyTool } from './define.ts';
import { openDispatcher } from './dispatcher.ts';
import { openGrants } from './grants.ts';
import type { Meter } from './meter.ts';
import { openOffBoarding } from './off-boarding.ts';
import type { ProviderRegistry } from './providers.ts';
import { openRefresher } from './refresher.ts';
import { openRewrap } from './rewrap.ts';
import { startRun, type Run } from './run.ts';
import type { EngineSettings } from './settings.ts';
import { openSignIns } from './sign-ins.ts';
import { openSweeper } from './sweeper.ts';
import { openTasks, type TaskSettings } from './tasks.ts';

/** What an engine is built from. */
export interface EngineParts {
  readonly ledger: Ledger;
  readonly vault: Vault;
  readonly keyring: Keyring;
  readonly providers: ProviderRegistry;
  readonly egress: Egress;
  readonly tools: ReadonlyMap<string, AnyTool>;
  readonly secrets: SecretsInUse;
  readonly settings: EngineSettings;
  readonly taskSettings: TaskSettings;
  readonly log: Log;
  readonly meter: Meter;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly serverName: string;
  readonly deliversOtherwise: (task: Task) => boolean;
  readonly wallMs: () => number;
  /** Monotonic. */
  readonly nowMs: () => number;
}

export type Engine = ReturnType<typeof openEngine>;

export function openEngine(parts: EngineParts) {
  const { ledger, vault, providers, settings, log, meter, secrets, nowMs } = parts;
  const changes = openChanges((listener) => ledger.onHint(listener));
  const asking = openAsking({
    ...parts,
    providerName: (id) => (providers.has(id) ? providers.get(id).displayName : id),
  });
  const grants = openGrants({ ledger, vault, changes, secrets });
  const refresher = openRefresher({ ledger, vault, grants, providers, changes, settings, log, meter });
  const access = openAccess({ ...parts, grants, refresher, changes });
  const signIns = openSignIns({ ...parts, grants, asking });
  const tasks = openTasks({
    ledger,
    links: asking.links,
    changes,
    settings: parts.taskSettings,
    meter,
    nowMs,
  });
  const offBoarding = openOffBoarding({ ledger, grants, providers, log });

  function start(task: Task, claimedAtMs: number): Run {
    const definition = parts.tools.get(task.tool);
    if (definition?.kind === 'job') {
      return startRun({ ledger, access, asking, settings, log, meter, nowMs }, definition, task, claimedAtMs);
    }
    return endUnknown(task);
  }

  /** A task whose job this version of the server no longer has ends with advice, not in a loop. */
  function endUnknown(task: Task): Run {
    const done = ledger
      .failUnknownJob(task.id, task.term)
      .then(() => undefined)
      .catch((error: unknown) => log.error('task.unknown job', { taskId: task.id, error }));
    return { task, done, lose() {}, handBack() {}, interrupt() {}, abandon: () => done };
  }

  const { maxIdleMs, maxAgeMs } = settings;
  async function endAged(limit: number): Promise<number> {
    if (maxIdleMs === undefined && maxAgeMs === undefined) return 0;
    return offBoarding.endAged(
      { ...(maxIdleMs === undefined ? {} : { maxIdleMs }), ...(maxAgeMs === undefined ? {} : { maxAgeMs }) },
      limit,
    );
  }

  const dispatcher = openDispatcher({ ledger, changes, settings, log, nowMs, start });
  const sweeper = openSweeper({
    ledger,
    vault,
    asking,
    settings,
    log,
    meter,
    endAged: (limit) => endAged(limit),
    finishAttempts: () => signIns.finishAttempts(),
  });

  return {
    tasks,
    signIns,
    offBoarding,
    /** Moves every sealed token set to the current vault key. */
    rewrap: openRewrap({ ledger, vault }),
    asking,
    changes,
    /** Tasks that run in this process at the moment. */
    running: () => dispatcher.running(),
    sweepNow: () => sweeper.sweepNow(),

    start(): void {
      dispatcher.start();
      sweeper.start();
    },

    /** Stops taking work, hands running work back at its checkpoint, waits for refreshes and exchanges (R1). */
    async stop(): Promise<void> {
      await dispatcher.stop();
      await sweeper.stop();
      await Promise.all([refresher.idle(), signIns.idle()]);
      changes.stop();
    },
  };
}
