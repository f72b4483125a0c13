/** Records for tests of the ledger, and the short ways to the states that a test starts from. */
import type { Ledger } from '../../src/store/ledger.ts';
import type { Connection, Elicitation, NewTask, Need, SealedGrant, Task } from '../../src/store/records.ts';

let count = 0;
/** A name that was not used before in this process. */
export const fresh = (kind: string): string => `${kind}-${(count += 1)}`;

export const ALICE = 'https://issuer.example|alice';
export const BOB = 'https://issuer.example|bob';
export const CLIENT = 'client-1';
export const LEASE_MS = 30_000;
export const WAIT_MS = 600_000;
export const LIMITS = { openPerOwner: 1_000_000 };

export function newTask(over: Partial<NewTask> = {}): NewTask {
  return {
    id: fresh('task'),
    owner: ALICE,
    clientId: CLIENT,
    clientName: null,
    tool: 'import',
    args: { from: 'here' },
    ttlMs: 3_600_000,
    modes: { form: true, url: true },
    interaction: 'interactive',
    onCancel: 'cancel',
    hostLeaseMs: null,
    trace: null,
    statusMessage: 'Started.',
    idempotency: null,
    ...over,
  };
}

export function need(over: Partial<Need> = {}): Need {
  const id = fresh('ask');
  return {
    id,
    name: 'github',
    kind: 'authorize',
    provider: 'github',
    connectionId: null,
    scopes: ['repo'],
    judgedGeneration: null,
    schema: null,
    message: 'Sign in.',
    forceConsent: false,
    link: { handleHash: `hash-${id}`, kid: 'k1' },
    ...over,
  };
}

/** A question without a link. */
export function formNeed(over: Partial<Need> = {}): Need {
  return need({
    name: 'folder',
    kind: 'form',
    provider: null,
    scopes: [],
    link: null,
    schema: {
      type: 'object',
      properties: { folder: { type: 'string', minLength: 1 } },
      required: ['folder'],
    },
    ...over,
  });
}

export function grant(over: Partial<SealedGrant> = {}): SealedGrant {
  return {
    recordKey: fresh('record'),
    digest: 'digest',
    kid: 'k1',
    sealedGeneration: 1,
    kind: 'tokens',
    scopes: ['repo'],
    expiresAtMs: null,
    refreshable: true,
    captured: {},
    subject: null,
    subjectLabel: null,
    ...over,
  };
}

/** A task that was created. */
export async function created(ledger: Ledger, over: Partial<NewTask> = {}): Promise<Task> {
  const creation = await ledger.createTask(newTask(over), LIMITS);
  if (creation.kind !== 'created') throw new Error(`not created but ${creation.kind}`);
  return creation.task;
}

/** A task in the hands of a worker. Nothing else may be due. */
export async function claimed(ledger: Ledger, over: Partial<NewTask> = {}): Promise<Task> {
  const task = await created(ledger, over);
  return claim(ledger, task.id);
}

/** Claims what is due and returns one of it. */
export async function claim(ledger: Ledger, taskId: string, holder = 'worker-1'): Promise<Task> {
  const tasks = await ledger.claimTasks({ holder, leaseMs: LEASE_MS, limit: 10_000, perOwner: 10_000 });
  const task = tasks.find((one) => one.id === taskId);
  if (task === undefined) throw new Error('it was not due');
  return task;
}

export function connection(ledger: Ledger, owner = ALICE, provider = 'github'): Promise<Connection> {
  return ledger.ensureConnection({ id: fresh('connection'), owner, provider, account: 'default' });
}

/** Stops a claimed task. */
export async function stop(
  ledger: Ledger,
  task: Task,
  needs: readonly Need[],
  waitMs = WAIT_MS,
): Promise<{ task: Task; asked: readonly Elicitation[] }> {
  const stopped = await ledger.stopTask({
    taskId: task.id,
    term: task.term,
    needs,
    waitMs,
    statusMessage: 'A sign-in is needed.',
  });
  if (stopped.kind !== 'stopped') throw new Error(`not stopped but ${stopped.kind}`);
  return stopped;
}

/** A task that waits for a connection. */
export async function waiting(ledger: Ledger, over: Partial<NewTask> = {}) {
  const task = await claimed(ledger, over);
  const access = await connection(ledger, task.owner);
  const stopped = await stop(ledger, task, [
    need({ connectionId: access.id, judgedGeneration: access.generation }),
  ]);
  const [question] = stopped.asked;
  if (question === undefined) throw new Error('nothing was asked');
  return { task: stopped.task, question, access };
}

/** Presses *Continue* on a question. @returns the state hash and the reserved vault key. */
export async function pressed(
  ledger: Ledger,
  question: Elicitation,
): Promise<{ stateHash: string; recordKey: string }> {
  const stateHash = fresh('state');
  const recordKey = fresh('record');
  const begun = await ledger.beginAttempt({
    stateHash,
    id: fresh('attempt'),
    elicitationId: question.id,
    taskId: question.taskId,
    connectionId: question.connectionId ?? '',
    owner: question.owner,
    provider: question.provider ?? '',
    sealedVerifier: 'sealed',
    nonce: null,
    redirectUri: 'https://keyturn.example/callback/github',
    issuer: 'https://provider.example',
    bindingHash: 'binding',
    sessionHash: 'session',
    scopes: question.scopes,
    tenant: {},
    anyAccount: false,
    recordKey,
  });
  if (begun !== 'started') throw new Error(`not started but ${begun}`);
  return { stateHash, recordKey };
}

/** Walks an attempt to `exchanged`. */
export async function exchanged(ledger: Ledger, question: Elicitation, over: Partial<SealedGrant> = {}) {
  const { stateHash, recordKey } = await pressed(ledger, question);
  const taking = await ledger.takeAttempt({ stateHash, holder: 'node-1', leaseMs: LEASE_MS });
  if (taking?.kind !== 'taken') throw new Error(`not taken but ${taking?.kind}`);
  const sealed = grant({ recordKey, ...over });
  if (!(await ledger.markExchanged(stateHash, 'node-1', sealed))) throw new Error('not noted');
  return { stateHash, sealed };
}

/** Signs in: the whole way from *Continue* to the commit. */
export async function signedIn(ledger: Ledger, question: Elicitation, over: Partial<SealedGrant> = {}) {
  const { stateHash, sealed } = await exchanged(ledger, question, over);
  return ledger.commitGrant({ stateHash, grant: sealed, again: null });
}

/** A connection with a token set that a client may use. */
export async function active(ledger: Ledger, owner = ALICE, provider = 'github', clientId = CLIENT) {
  const access = await connection(ledger, owner, provider);
  await ledger.approveClient(owner, access.id, clientId);
  const record = grant();
  const { connection: live } = await ledger.commitRefresh({
    connectionId: access.id,
    generation: access.generation,
    grant: record,
  });
  if (live === undefined) throw new Error('no connection');
  return live;
}
