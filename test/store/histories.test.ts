/**
 * Random histories against a small model: workers, people, clients, refreshes, sweepers and time act in any order, with
 * claims old and new. A quick sample always; ten thousand histories when KEYTURN_LONG=1.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isTerminal } from '../../src/task/status.ts';
import type { Connection, Elicitation, Task } from '../../src/store/records.ts';
import { satisfies } from '../../src/store/satisfaction.ts';
import { ALICE, CLIENT, formNeed, fresh, grant, need, newTask, pressed } from '../support/ledger-records.ts';
import { openSqliteRig, type Rig } from '../support/ledgers.ts';

const LEASE = 100;
const WAIT = 300;
const ACTS = [
  'create',
  'claim',
  'renew',
  'checkpoint',
  'park',
  'stop',
  'finish',
  'fail',
  'cancel',
  'accept',
  'decline',
  'fill in',
  'reask',
  'press',
  'take',
  'note',
  'grant',
  'refuse',
  'claim refresh',
  'commit refresh',
  'fail refresh',
  'condemn',
  'rewrap',
  'revoke',
  'approve',
  'sweep lapsed',
  'sweep leases',
  'sweep satisfied',
  'sweep expired',
  'wait',
  'wait',
] as const;

/** One event: what happens, to which of the things there are, and a number for its details. */
const event = fc.record({
  act: fc.constantFrom(...ACTS),
  pick: fc.nat({ max: 7 }),
  detail: fc.constantFrom(0, 1, 2, 3),
});
type Event = typeof event extends fc.Arbitrary<infer Value> ? Value : never;

interface Held {
  readonly taskId: string;
  readonly term: number;
  untilMs: number;
  live: boolean;
}

/** What a history has brought about so far, as far as the facts below need it. */
class History {
  readonly rig: Rig;
  readonly claims: Held[] = [];
  readonly taskIds: string[] = [];
  readonly questions: Elicitation[] = [];
  readonly attempts: { stateHash: string; recordKey: string }[] = [];
  readonly refreshes: { connectionId: string; generation: number; recordKey: string; holder: string }[] = [];
  readonly ended = new Map<string, string>();
  readonly terms = new Map<string, number>();
  readonly keys = new Map<string, string>();
  readonly generations = new Map<string, number>();
  last = new Map<string, Task>();

  constructor(rig: Rig) {
    this.rig = rig;
  }

  /** A worker's write wins exactly while its claim is the current one and its lease is live. */
  write(held: Held, won: boolean, after: 'keeps' | 'leaves'): void {
    expect({ won, of: held }).toEqual({ won: held.live && this.rig.nowMs() < held.untilMs, of: held });
    if (won && after === 'leaves') held.live = false;
    if (won && after === 'keeps') held.untilMs = this.rig.nowMs() + LEASE;
  }

  drop(taskId: string): void {
    for (const held of this.claims) if (held.taskId === taskId) held.live = false;
  }

  async happen({ act, pick, detail }: Event): Promise<void> {
    const { ledger } = this.rig;
    const of = <Item>(items: readonly Item[]): Item | undefined =>
      items[items.length - 1 - (pick % (items.length || 1))];
    const held = of(this.claims);
    const claim = held && { taskId: held.taskId, term: held.term };
    const taskId = of(this.taskIds);
    const question = of(this.questions);
    const attempt = of(this.attempts);
    const refresh = of(this.refreshes);
    const access = await ledger.ensureConnection({
      id: fresh('connection'),
      owner: ALICE,
      provider: pick % 2 === 0 ? 'github' : 'drive',
      account: 'default',
    });
    switch (act) {
      case 'create': {
        const task = newTask({ ttlMs: 50, onCancel: detail === 0 ? 'wait' : 'cancel' });
        await ledger.createTask(task, { openPerOwner: 100 });
        this.taskIds.push(task.id);
        return;
      }
      case 'claim': {
        const tasks = await ledger.claimTasks({
          holder: fresh('w'),
          leaseMs: LEASE,
          limit: detail + 1,
          perOwner: 3,
        });
        for (const task of tasks) {
          this.drop(task.id);
          this.claims.push({
            taskId: task.id,
            term: task.term,
            untilMs: this.rig.nowMs() + LEASE,
            live: true,
          });
        }
        return;
      }
      case 'renew':
        if (held && claim)
          this.write(held, (await ledger.renewClaim({ ...claim, leaseMs: LEASE })).won, 'keeps');
        return;
      case 'checkpoint':
        if (held && claim) {
          const saved = await ledger.saveCheckpoint({ ...claim, leaseMs: LEASE, checkpoint: detail });
          this.write(held, saved.won, 'keeps');
        }
        return;
      case 'park':
        if (held && claim) {
          const parked = await ledger.parkTask({ ...claim, delayMs: detail * 40, why: 'timer' });
          this.write(held, parked.won, 'leaves');
        }
        return;
      case 'stop':
        if (held && claim) {
          const needs = [
            need({ name: access.provider, connectionId: access.id, judgedGeneration: access.generation }),
          ];
          if (detail === 1) needs.push(formNeed());
          if (detail === 2) needs.push(need({ name: `${access.provider}-2`, connectionId: access.id }));
          const stopped = await ledger.stopTask({ ...claim, needs, waitMs: WAIT, statusMessage: '.' });
          if (stopped.kind !== 'go on') this.write(held, stopped.kind === 'stopped', 'leaves');
          if (stopped.kind === 'stopped') this.questions.push(...stopped.asked);
        }
        return;
      case 'finish':
      case 'fail':
        if (held && claim) {
          const outcome =
            act === 'finish'
              ? ({ kind: 'result', result: 1 } as const)
              : ({ kind: 'error', code: 1, message: 'No.', reason: 'protocol', facts: {} } as const);
          this.write(
            held,
            (await ledger.finishTask({ ...claim, outcome, statusMessage: '.' })).won,
            'leaves',
          );
        }
        return;
      case 'cancel':
        if (taskId !== undefined && (await ledger.cancelTask(ALICE, taskId, '.')).won) this.drop(taskId);
        return;
      case 'accept':
      case 'decline':
      case 'fill in':
        if (question !== undefined) {
          const action = act === 'decline' ? (detail === 0 ? 'cancel' : 'decline') : 'accept';
          const content = act === 'fill in' ? { folder: 'x' } : undefined;
          await ledger.answerTask(ALICE, question.taskId, new Map([[question.key, { action, content }]]));
        }
        return;
      case 'reask':
        for (const due of await ledger.dueReasks(2)) {
          const link = { handleHash: fresh('hash'), kid: 'k1' };
          await ledger.reask(due.id, { id: fresh('ask'), link, message: '.' });
          const view = await ledger.readTask(due.taskId);
          this.questions.push(...(view?.asked ?? []).filter((one) => one.reasks > due.reasks));
        }
        return;
      case 'press':
        if (question !== undefined && question.kind !== 'form') {
          await pressed(ledger, question).then(
            (one) => this.attempts.push(one),
            () => undefined,
          );
        }
        return;
      case 'take':
        if (attempt) await ledger.takeAttempt({ stateHash: attempt.stateHash, holder: 'n', leaseMs: LEASE });
        return;
      case 'note':
        if (attempt) {
          const scopes = detail === 0 ? [] : ['repo'];
          await ledger.markExchanged(attempt.stateHash, 'n', grant({ recordKey: attempt.recordKey, scopes }));
        }
        return;
      case 'grant':
        if (attempt) {
          const sealed = (await ledger.findAttempt(attempt.stateHash))?.sealed;
          const again = { id: fresh('ask'), link: { handleHash: fresh('hash'), kid: 'k1' }, message: '.' };
          if (sealed) {
            const granted = await ledger.commitGrant({ stateHash: attempt.stateHash, grant: sealed, again });
            if (granted.askedAgain) this.questions.push(granted.askedAgain);
          }
        }
        return;
      case 'refuse':
        if (attempt) {
          const ends = detail === 0 ? { ends: { reason: 'access_denied' as const, statusMessage: '.' } } : {};
          const phase = detail === 1 ? ('lost' as const) : ('refused' as const);
          await ledger.refuseAttempt({ stateHash: attempt.stateHash, reason: 'r', phase, ...ends });
        }
        return;
      case 'claim refresh': {
        const recordKey = fresh('record');
        const one = { connectionId: access.id, generation: access.generation, holder: fresh('h'), recordKey };
        const claimed = await ledger.claimRefresh({ ...one, leaseMs: LEASE, urgent: detail === 0 });
        if (claimed?.kind !== 'acquired') return;
        this.refreshes.push(one);
        // Whoever takes over reads the inherited key first, and commits what lies there.
        if (claimed.inherited) this.refreshes.push({ ...one, recordKey: claimed.inherited.recordKey });
        return;
      }
      case 'commit refresh':
        if (refresh) {
          const commit = { ...refresh, grant: grant({ recordKey: refresh.recordKey }) };
          await ledger.commitRefresh(commit);
          // The news of a commit may be lost, and the commit tried again.
          if (detail === 0) await ledger.commitRefresh(commit);
        }
        return;
      case 'fail refresh':
        if (refresh) {
          const verdict = detail === 0 ? 'dead' : 'later';
          await ledger.failRefresh({
            ...refresh,
            verdict,
            reason: 'r',
            retryInMs: 50,
            doubtful: detail === 1,
          });
        }
        return;
      case 'condemn':
        await ledger.condemn(access.id, access.generation, 'r');
        return;
      case 'rewrap':
        if (access.record) {
          const to = grant({ recordKey: fresh('record'), scopes: access.record.scopes });
          await ledger.rewrapRecord(access.id, access.record.recordKey, to);
          if (detail === 0) await ledger.rewrapRecord(access.id, access.record.recordKey, to);
        }
        return;
      case 'revoke':
        if (detail === 0) await ledger.revokeConnection(access.id, 'person');
        return;
      case 'approve':
        await ledger.approveClient(ALICE, access.id, CLIENT);
        return;
      case 'sweep lapsed':
        for (const id of await ledger.sweepLapsed(10)) this.drop(id);
        return;
      case 'sweep leases': {
        const swept = await ledger.sweepLeases(10);
        for (const id of [...swept.due, ...swept.givenUp]) this.drop(id);
        return;
      }
      case 'sweep satisfied':
        // Stops and grants leave nothing for it to do.
        expect(await ledger.sweepSatisfied(10)).toEqual([]);
        return;
      case 'sweep expired':
        await ledger.sweepExpired(10);
        return;
      case 'wait': {
        // Often to the very edge of something.
        const edges = [LEASE - 1, 1, WAIT / 2, detail === 0 && pick === 0 ? 700_000 : LEASE];
        await this.rig.at(this.rig.nowMs() + (edges[detail] ?? 1));
      }
    }
  }

  /** What holds after every event. */
  async check(): Promise<void> {
    const { rig } = this;
    const nowMs = rig.nowMs();
    const now = new Map<string, Task>();
    for (const id of this.taskIds) {
      const view = await rig.ledger.readTask(id);
      const before = this.ended.get(id);
      if (view === undefined) continue;
      const { task } = view;
      now.set(id, task);
      // One end, the same for every reader for ever.
      if (before !== undefined) expect(JSON.stringify(task)).toBe(before);
      else if (isTerminal(task.status)) this.ended.set(id, JSON.stringify(task));
      // Terms only grow.
      expect(task.term).toBeGreaterThanOrEqual(this.terms.get(id) ?? 0);
      this.terms.set(id, task.term);
      // Nothing resumes at or after its deadline.
      const old = this.last.get(id);
      if (old?.status === 'input_required' && task.status === 'working') {
        expect(nowMs).toBeLessThan(old.deadlineMs ?? 0);
      }
      // The lifetime never shrinks, and covers the wait.
      expect(task.ttlMs).toBeGreaterThanOrEqual(old?.ttlMs ?? 0);
      if (task.deadlineMs !== null) expect(task.createdAtMs + task.ttlMs).toBeGreaterThan(task.deadlineMs);
      // A key means one question for ever.
      for (const one of view.asked) {
        const name = `${id} ${one.key}`;
        expect(this.keys.get(name) ?? one.id).toBe(one.id);
        this.keys.set(name, one.id);
      }
      // No wait for what is there already.
      for (const one of view.asked.filter((asked) => asked.connectionId !== null)) {
        const access = await rig.ledger.readConnection(one.connectionId ?? '');
        const approved = await rig.ledger.clientMayUse(one.connectionId ?? '', one.clientId);
        if (access) expect({ waits: satisfies(access, one, approved) }).toEqual({ waits: false });
      }
    }
    this.last = now;
    const orphans = await rig.rows<{ record_key: string }>(`SELECT record_key FROM vault_orphans`);
    const swept = new Set(orphans.map((row) => row.record_key));
    const connections: Connection[] = await rig.ledger.findConnections({ after: '', limit: 10 });
    for (const access of connections) {
      // The key in force is never one to be deleted; generations only grow.
      expect(swept.has(access.record?.recordKey ?? '')).toBe(false);
      expect(access.generation).toBeGreaterThanOrEqual(this.generations.get(access.id) ?? 0);
      this.generations.set(access.id, access.generation);
    }
  }
}

let rig: Rig;
beforeAll(async () => {
  rig = await openSqliteRig();
});
afterAll(() => rig.close());

it('no history breaks the rules of tasks, waits and connections', async () => {
  const numRuns = process.env['KEYTURN_LONG'] === '1' ? 10_000 : 150;
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 60, size: 'max' }), async (events) => {
      for (const table of [
        'tasks',
        'elicitations',
        'connections',
        'approvals',
        'attempts',
        'vault_orphans',
        'audit',
      ]) {
        await rig.run(`DELETE FROM ${table}`);
      }
      const history = new History(rig);
      for (const one of [...OPENING, ...events]) {
        await history.happen(one);
        await history.check();
      }
    }),
    { numRuns },
  );
});

/** Most histories begin with a task that waits. */
const OPENING: readonly Event[] = [
  { act: 'create', pick: 0, detail: 1 },
  { act: 'create', pick: 0, detail: 1 },
  { act: 'claim', pick: 0, detail: 1 },
  { act: 'stop', pick: 0, detail: 0 },
];
