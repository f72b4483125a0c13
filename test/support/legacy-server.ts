/**
 * An MCP server of the revisions with a handshake on a real socket, and the ledger behind it. Nothing runs jobs here:
 * a test is the worker, and the person at the provider, so that every moment of a task can be held still.
 */
import { noMeter } from '../../src/engine/meter.ts';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Fastify from 'fastify';
import { z } from 'zod';
import type { Caller } from '../../src/engine/caller.ts';
import { openChanges } from '../../src/engine/changes.ts';
import {
  askFirst,
  defineJob,
  defineTool,
  ProtocolError,
  text,
  type AnyTool,
} from '../../src/engine/define.ts';
import { openTasks } from '../../src/engine/tasks.ts';
import type { FormSchema } from '../../src/elicitation/form.ts';
import { silentLog } from '../../src/log.ts';
import { openCatalogue } from '../../src/mcp/catalogue.ts';
import { openLegacyFace } from '../../src/mcp/rev-2025-11-25/face.ts';
import type { LegacyOptions } from '../../src/mcp/rev-2025-11-25/parts.ts';
import { openLedger } from '../../src/store/ledger.ts';
import type { Json, Need, Outcome, Task } from '../../src/store/records.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { parseKeyText } from '../../src/vault/key-text.ts';
import { generateKey, openKeyring } from '../../src/vault/keyring.ts';

const NAME_FORM: FormSchema = {
  type: 'object',
  properties: { user_name: { type: 'string', minLength: 1 } },
  required: ['user_name'],
};

/** The tools of the server. Jobs never run: a test ends them. */
export const TOOLS: readonly AnyTool[] = [
  defineTool({
    name: 'greet',
    description: 'Greets at once.',
    input: z.object({ name: z.string().default('you') }),
    run: ({ args }) => text(`Hello, ${args.name}.`),
  }),
  defineTool({
    name: 'greet_by_name',
    description: 'Asks for a name, then greets.',
    run: ({ answers }) => {
      const answer = answers.get('user_name');
      if (answer === undefined) throw askFirst({ user_name: { schema: NAME_FORM, message: 'Your name?' } });
      return text(`Hello, ${String(answer['user_name'])}.`);
    },
  }),
  defineTool({
    name: 'broken',
    description: 'Fails.',
    run: () => {
      throw new Error('secret detail');
    },
  }),
  defineTool({
    name: 'protocol_error',
    description: 'Answers with an error of its own.',
    run: () => {
      throw new ProtocolError(-32011, 'No such shelf');
    },
  }),
  defineJob({
    name: 'ingest',
    title: 'Ingest',
    description: 'Reads a source.',
    input: z.object({ source: z.string(), pages: z.int().optional() }),
    run: () => Promise.reject(new Error('a test ends this job')),
  }),
  defineJob({
    name: 'patient',
    description: 'Waits when its question is dismissed.',
    onCancel: 'wait',
    run: () => Promise.reject(new Error('a test ends this job')),
  }),
  defineJob({
    name: 'only_task',
    description: 'Only as a task.',
    taskSupport: 'required',
    run: () => Promise.reject(new Error('a test ends this job')),
  }),
];

/** People and their clients, by access token. */
export const CALLERS: Readonly<Record<string, Caller>> = {
  'alice-token': { owner: 'https://issuer.example#alice', clientId: 'app', scopes: ['mcp'] },
  'alice-renewed': { owner: 'https://issuer.example#alice', clientId: 'app', scopes: ['mcp'] },
  'alice-other-app': { owner: 'https://issuer.example#alice', clientId: 'other', scopes: ['mcp'] },
  'bob-token': { owner: 'https://issuer.example#bob', clientId: 'app', scopes: ['mcp'] },
  'carol-token': { owner: 'https://elsewhere.example#alice', clientId: 'app', scopes: ['mcp'] },
};

/** A node of the server. */
export type LegacyServer = Awaited<ReturnType<typeof startLegacyServer>>;

/** A place that outlives nodes: the ledger's file and the keys. */
export async function makePlace() {
  const folder = await mkdtemp(join(tmpdir(), 'keyturn-legacy-'));
  const keyText = generateKey().entry.reveal();
  return {
    file: join(folder, 'ledger.db'),
    keyring: () => openKeyring(parseKeyText(keyText, 'KEYS')),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Starts a node. */
export async function startLegacyServer(
  place: Awaited<ReturnType<typeof makePlace>>,
  options: Partial<Pick<LegacyOptions, 'delivery' | 'companions' | 'settings' | 'nowMs'>> & {
    port?: number;
    ledgerWallMs?: () => number;
    tools?: readonly AnyTool[];
  } = {},
) {
  const sqlite = await openSqlite({
    file: place.file,
    ...(options.ledgerWallMs === undefined ? {} : { wallMs: options.ledgerWallMs }),
  });
  const ledger = openLedger(sqlite);
  const keyring = await place.keyring();
  const changes = openChanges((listener) => ledger.onHint(listener));
  const tasks = openTasks({
    ledger,
    links: { urlFor: (elicitationId) => Promise.resolve(`https://keyturn.example/connect/${elicitationId}`) },
    changes,
    settings: { openPerOwner: 50, queueDepth: 1_000, defaultTtlMs: 3_600_000, maxTtlMs: 86_400_000 },
    nowMs: () => performance.now(),
    meter: noMeter,
  });
  const face = openLegacyFace({
    catalogue: openCatalogue(options.tools ?? TOOLS),
    tasks,
    keyring,
    serverInfo: { name: 'keyturn', version: '1.0.0' },
    log: silentLog,
    ...(options.delivery === undefined ? {} : { delivery: options.delivery }),
    ...(options.companions === undefined ? {} : { companions: options.companions }),
    ...(options.nowMs === undefined ? {} : { nowMs: options.nowMs }),
    settings: { holdMs: 5_000, lingerMs: 200, keepAliveMs: 100, ...options.settings },
  });
  const app = Fastify({ forceCloseConnections: true });
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: '/mcp',
    handler: async (request, reply) => {
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      const caller = CALLERS[token];
      if (caller === undefined) return reply.code(401).send();
      await face.handle({ request, reply, caller, body: request.body });
      return reply;
    },
  });
  await app.listen({ host: '127.0.0.1', port: options.port ?? 0 });
  const { port } = app.server.address() as AddressInfo;

  /** A need of a sign-in at the provider, for its person's connection. */
  async function signInNeed(owner: string, name = 'acme'): Promise<Need> {
    const connection = await ledger.ensureConnection({
      id: randomUUID(),
      owner,
      provider: name,
      account: 'default',
    });
    return {
      id: randomUUID(),
      name,
      kind: 'authorize',
      provider: name,
      connectionId: connection.id,
      scopes: ['read'],
      judgedGeneration: null,
      schema: null,
      message: `Sign in at ${name}.`,
      forceConsent: false,
      link: { handleHash: randomUUID(), kid: keyring.currentKid },
    };
  }

  function formNeed(): Need {
    return {
      id: randomUUID(),
      name: 'user_name',
      kind: 'form',
      provider: null,
      connectionId: null,
      scopes: [],
      judgedGeneration: null,
      schema: NAME_FORM,
      message: 'Your name?',
      forceConsent: false,
      link: null,
    };
  }

  return {
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    port,
    ledger,
    tasks,
    changes,
    signInNeed,
    formNeed,

    /** Takes the next due task as its worker. */
    async claim(): Promise<Task> {
      for (let tries = 0; tries < 200; tries += 1) {
        const [task] = await ledger.claimTasks({ holder: 'test', leaseMs: 60_000, limit: 1, perOwner: 9 });
        if (task !== undefined) return task;
        await pause(10);
      }
      throw new Error('no task became due');
    },

    /** Stops a claimed task for its needs. */
    async stop(task: Task, needs: readonly Need[], waitMs = 60_000): Promise<void> {
      const stopped = await ledger.stopTask({
        taskId: task.id,
        term: task.term,
        needs,
        waitMs,
        statusMessage: 'Waiting for a sign-in at Acme.',
      });
      if (stopped.kind !== 'stopped') throw new Error(stopped.kind);
    },

    /** Ends a claimed task with a tool result, or with an outcome. */
    async finish(task: Task, ending: { content: Json[]; isError?: boolean } | Outcome): Promise<void> {
      const outcome: Outcome = 'kind' in ending ? ending : { kind: 'result', result: { ...ending } };
      const statusMessage = outcome.kind === 'error' ? outcome.message : 'Done.';
      const { won } = await ledger.finishTask({ taskId: task.id, term: task.term, outcome, statusMessage });
      if (!won) throw new Error('the task was lost');
    },

    /** Says how far a claimed task is. */
    async tell(task: Task, progress: { done: number; total: number }): Promise<void> {
      await ledger.renewClaim({
        taskId: task.id,
        term: task.term,
        leaseMs: 60_000,
        progress,
        statusMessage: `${progress.done} of ${progress.total}`,
      });
    },

    /** What a finished sign-in at the provider does to a question. */
    async signIn(elicitationId: string): Promise<void> {
      const asked = await ledger.findQuestion(elicitationId);
      if (asked === undefined) throw new Error('no such question');
      const { elicitation } = asked;
      const stateHash = randomUUID();
      const grant = {
        recordKey: randomUUID(),
        digest: 'digest',
        kid: keyring.currentKid,
        sealedGeneration: 1,
        kind: 'tokens' as const,
        scopes: elicitation.scopes,
        expiresAtMs: null,
        refreshable: true,
        captured: {},
        subject: 'account',
        subjectLabel: null,
      };
      const begun = await ledger.beginAttempt({
        stateHash,
        id: randomUUID(),
        elicitationId,
        taskId: elicitation.taskId,
        connectionId: elicitation.connectionId ?? '',
        owner: elicitation.owner,
        provider: elicitation.provider ?? '',
        sealedVerifier: 'sealed',
        nonce: null,
        redirectUri: 'https://keyturn.example/callback/acme',
        issuer: 'https://acme.example',
        bindingHash: 'hash',
        sessionHash: 'hash',
        scopes: elicitation.scopes,
        tenant: {},
        anyAccount: true,
        recordKey: grant.recordKey,
      });
      if (begun !== 'started') throw new Error(begun);
      await ledger.takeAttempt({ stateHash, holder: 'test', leaseMs: 60_000 });
      await ledger.markExchanged(stateHash, 'test', grant);
      const granted = await ledger.commitGrant({ stateHash, grant, again: null });
      if (granted.kind !== 'granted') throw new Error(granted.kind);
    },

    async close(): Promise<void> {
      await face.close();
      await app.close();
      changes.stop();
      await ledger.close();
    },
  };
}
