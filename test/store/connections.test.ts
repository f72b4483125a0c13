/** Connections in the ledger: refreshed once, committed while current, never robbed of the live key; on every engine. */
import { describe, expect, it } from 'vitest';
import {
  ALICE,
  BOB,
  CLIENT,
  LEASE_MS,
  active,
  claimed,
  connection,
  exchanged,
  fresh,
  grant,
  need,
  pressed,
  signedIn,
  stop,
  waiting,
} from '../support/ledger-records.ts';
import { onEveryEngine, type Rig } from '../support/ledgers.ts';

const orphans = async (rig: Rig) =>
  (await rig.rows<{ record_key: string }>(`SELECT record_key FROM vault_orphans ORDER BY record_key`)).map(
    (row) => row.record_key,
  );

const claimRefresh = (
  rig: Rig,
  access: { id: string; generation: number },
  holder: string,
  recordKey: string,
) =>
  rig.ledger.claimRefresh({
    connectionId: access.id,
    generation: access.generation,
    holder,
    leaseMs: LEASE_MS,
    recordKey,
    urgent: false,
  });

const failRefresh = (
  rig: Rig,
  access: { id: string; generation: number },
  holder: string,
  verdict: 'later' | 'dead' | 'misconfigured',
) =>
  rig.ledger.failRefresh({
    connectionId: access.id,
    generation: access.generation,
    holder,
    verdict,
    reason: 'refresh_token_dead',
    retryInMs: 1_000,
    doubtful: false,
  });

onEveryEngine(({ rig: open }) => {
  describe('a refresh', () => {
    it('is one holder’s at a time, of many that ask at once', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, n) => claimRefresh(rig, access, `h${n}`, fresh('key'))),
      );
      expect(claims.filter((one) => one?.kind === 'acquired')).toHaveLength(1);
      expect(claims.filter((one) => one?.kind === 'busy')).toHaveLength(19);
    });

    it('goes over to the next at the end of the lease, who is told the key that the first one reserved', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'first', 'key-1');
      await rig.at(rig.nowMs() + LEASE_MS - 1);
      expect((await claimRefresh(rig, access, 'second', 'key-2'))?.kind).toBe('busy');
      await rig.at(rig.nowMs() + 1);
      expect(await claimRefresh(rig, access, 'second', 'key-2')).toMatchObject({
        kind: 'acquired',
        inherited: { holder: 'first', recordKey: 'key-1' },
        connection: { doubtfulUses: 1 },
      });
    });

    it('commits late while its generation is current, even after a takeover and after quarantine', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'first', 'key-1');
      await rig.at(rig.nowMs() + LEASE_MS);
      await claimRefresh(rig, access, 'second', 'key-2');
      await rig.ledger.condemn(access.id, access.generation, 'resource_refused');
      const { won, connection: live } = await rig.ledger.commitRefresh({
        connectionId: access.id,
        generation: access.generation,
        grant: grant({ recordKey: 'key-1' }),
      });
      expect(won).toBe(true);
      expect(live).toMatchObject({ status: 'active', generation: access.generation + 1, intent: null });
      expect(await orphans(rig)).not.toContain('key-1');
      expect(await orphans(rig)).toContain('key-2');
    });

    it('committed by whoever took over is not undone by the late commit of the same answer', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'first', 'key-1');
      await rig.at(rig.nowMs() + LEASE_MS);
      await claimRefresh(rig, access, 'second', 'key-2');
      const commit = {
        connectionId: access.id,
        generation: access.generation,
        grant: grant({ recordKey: 'key-1' }),
      };
      expect((await rig.ledger.commitRefresh(commit)).won).toBe(true);
      expect(await rig.ledger.commitRefresh(commit)).toMatchObject({
        won: true,
        connection: { generation: access.generation + 1 },
      });
      expect(await orphans(rig)).not.toContain('key-1');
    });

    it('of a generation that has passed is not committed, and its key is swept', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      const commit = (recordKey: string) =>
        rig.ledger.commitRefresh({
          connectionId: access.id,
          generation: access.generation,
          grant: grant({ recordKey }),
        });
      await commit('key-1');
      expect((await commit('key-2')).won).toBe(false);
      expect(await orphans(rig)).toContain('key-2');
      expect((await claimRefresh(rig, access, 'h', 'key-3'))?.kind).toBe('newer');
    });

    it('that failed for now backs off, and one that is dead needs a person', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'h', 'key-1');
      expect(await failRefresh(rig, access, 'h', 'later')).toMatchObject({ status: 'active', failures: 1 });
      expect((await claimRefresh(rig, access, 'h', 'key-2'))?.kind).toBe('later');
      await rig.at(rig.nowMs() + 1_000);
      expect((await claimRefresh(rig, access, 'h', 'key-2'))?.kind).toBe('acquired');
      expect(await failRefresh(rig, access, 'h', 'dead')).toMatchObject({
        status: 'needs_sign_in',
        generation: access.generation,
        statusReason: 'refresh_token_dead',
      });
      expect((await claimRefresh(rig, access, 'h', 'key-3'))?.kind).toBe('needs sign-in');
    });

    it('is not judged by a holder whom another has taken over from', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'first', 'key-1');
      await rig.at(rig.nowMs() + LEASE_MS);
      await claimRefresh(rig, access, 'second', 'key-2');
      expect(await failRefresh(rig, access, 'first', 'dead')).toMatchObject({
        status: 'active',
        intent: { holder: 'second' },
      });
    });

    it('that fails late does not bring a revoked connection back to waiting for a sign-in', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'h', 'key-1');
      await rig.ledger.revokeConnection(access.id, 'person');
      await failRefresh(rig, access, 'h', 'dead');
      expect(await rig.ledger.readConnection(access.id)).toMatchObject({
        status: 'revoked',
        statusReason: 'person',
      });
    });

    it('whose answer comes after a revocation is not taken', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      await claimRefresh(rig, access, 'h', 'key-1');
      await rig.ledger.revokeConnection(access.id, 'person');
      const commit = {
        connectionId: access.id,
        generation: access.generation,
        grant: grant({ recordKey: 'key-1' }),
      };
      expect((await rig.ledger.commitRefresh(commit)).won).toBe(false);
      expect(await orphans(rig)).toContain('key-1');
    });
  });

  it('a record sealed anew keeps its generation, and sealing it twice does not orphan it', async () => {
    const rig = await open();
    const access = await active(rig.ledger);
    const from = access.record?.recordKey ?? '';
    const to = grant({ recordKey: 'anew' });
    expect(await rig.ledger.rewrapRecord(access.id, from, to)).toBe(true);
    expect(await rig.ledger.rewrapRecord(access.id, from, to)).toBe(true);
    expect(await rig.ledger.rewrapRecord(access.id, from, grant({ recordKey: 'other' }))).toBe(false);
    expect(await rig.ledger.readConnection(access.id)).toMatchObject({
      generation: access.generation,
      record: { recordKey: 'anew' },
    });
    expect(await orphans(rig)).toEqual([from, 'other'].toSorted());
  });

  it('a connection is one, however many ask for it at once, and each owner has their own', async () => {
    const rig = await open();
    const other = await rig.node();
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, n) => connection((n % 2 === 0 ? rig : other).ledger)),
    );
    expect(new Set(found.map((one) => one.id)).size).toBe(1);
    expect((await connection(rig.ledger, BOB)).id).not.toBe(found[0]?.id);
  });

  it('an approval is one client’s and needs the owner', async () => {
    const rig = await open();
    const access = await active(rig.ledger);
    expect(await rig.ledger.clientMayUse(access.id, CLIENT)).toBe(true);
    expect(await rig.ledger.clientMayUse(access.id, 'client-2')).toBe(false);
    await rig.ledger.approveClient(BOB, access.id, 'client-2');
    expect(await rig.ledger.clientMayUse(access.id, 'client-2')).toBe(false);
    await rig.ledger.revokeConnection(access.id, 'person');
    expect(await rig.ledger.clientMayUse(access.id, CLIENT)).toBe(false);
  });

  describe('an attempt', () => {
    it('is taken once of many that try, on any node', async () => {
      const rig = await open();
      const other = await rig.node();
      const { question } = await waiting(rig.ledger);
      const { stateHash } = await pressed(rig.ledger, question);
      const takings = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          (n % 2 === 0 ? rig : other).ledger.takeAttempt({ stateHash, holder: `n${n}`, leaseMs: LEASE_MS }),
        ),
      );
      expect(takings.filter((one) => one?.kind === 'taken')).toHaveLength(1);
      expect(takings.filter((one) => one?.kind === 'used')).toHaveLength(19);
    });

    it('is one exchange of its connection at a time', async () => {
      const rig = await open();
      const { question } = await waiting(rig.ledger);
      const first = await pressed(rig.ledger, question);
      const second = await pressed(rig.ledger, question);
      const take = (stateHash: string) =>
        rig.ledger.takeAttempt({ stateHash, holder: 'n', leaseMs: LEASE_MS });
      expect((await take(first.stateHash))?.kind).toBe('taken');
      expect((await take(second.stateHash))?.kind).toBe('busy');
      await rig.at(rig.nowMs() + LEASE_MS);
      expect((await take(second.stateHash))?.kind).toBe('taken');
    });

    it('redeems nothing when the connection has what was asked for already', async () => {
      const rig = await open();
      const { task, question } = await waiting(rig.ledger);
      const { stateHash } = await pressed(rig.ledger, question);
      expect((await signedIn(rig.ledger, question)).resumed).toEqual([task.id]);
      const taking = await rig.ledger.takeAttempt({ stateHash, holder: 'n', leaseMs: LEASE_MS });
      expect(taking?.kind).toBe('satisfied');
    });

    it('is not redeemed after a cancel, and the page can tell why', async () => {
      const rig = await open();
      const { task, question } = await waiting(rig.ledger);
      const { stateHash } = await pressed(rig.ledger, question);
      await rig.ledger.cancelTask(ALICE, task.id, '.');
      const taking = await rig.ledger.takeAttempt({ stateHash, holder: 'n', leaseMs: LEASE_MS });
      expect(taking).toMatchObject({ kind: 'over', reason: 'link_over' });
      expect(await rig.ledger.findAttempt(stateHash)).toMatchObject({
        phase: 'refused',
        outcome: { reason: 'link_over', facts: { status: 'cancelled' } },
      });
    });

    it('is finished by any node once its answer lies sealed, and committed once', async () => {
      const rig = await open();
      const { task, question } = await waiting(rig.ledger);
      const { stateHash, sealed } = await exchanged(rig.ledger, question);
      expect(await rig.ledger.staleAttempts(10)).toEqual([]);
      expect(await rig.ledger.adoptAttempt(stateHash, 'node-2', LEASE_MS)).toBe(false);
      await rig.at(rig.nowMs() + LEASE_MS);
      expect((await rig.ledger.staleAttempts(10)).map((one) => one.sealed?.recordKey)).toEqual([
        sealed.recordKey,
      ]);
      expect(await rig.ledger.adoptAttempt(stateHash, 'node-2', LEASE_MS)).toBe(true);
      const commits = await Promise.all(
        [1, 2, 3].map(() => rig.ledger.commitGrant({ stateHash, grant: sealed, again: null })),
      );
      expect(commits.filter((one) => one.kind === 'granted')).toHaveLength(1);
      expect(commits.flatMap((one) => one.resumed)).toEqual([task.id]);
      expect(await orphans(rig)).not.toContain(sealed.recordKey);
    });

    it('that was lost can still commit when its answer turns up, and one refused cannot', async () => {
      const rig = await open();
      const { question } = await waiting(rig.ledger);
      const { stateHash, recordKey } = await pressed(rig.ledger, question);
      await rig.ledger.takeAttempt({ stateHash, holder: 'n', leaseMs: LEASE_MS });
      await rig.ledger.refuseAttempt({ stateHash, reason: 'exchange_lost', phase: 'lost' });
      const sealed = grant({ recordKey });
      expect(await rig.ledger.markExchanged(stateHash, 'n', sealed)).toBe(true);
      expect((await rig.ledger.commitGrant({ stateHash, grant: sealed, again: null })).kind).toBe('granted');
      expect(await orphans(rig)).not.toContain(recordKey);
      const refused = await pressed(rig.ledger, (await waiting(rig.ledger, { owner: BOB })).question);
      await rig.ledger.refuseAttempt({ stateHash: refused.stateHash, reason: 'wrong_account' });
      expect(await rig.ledger.markExchanged(refused.stateHash, 'n', sealed)).toBe(false);
    });

    it('with too few scopes asks once more with forced consent, then ends the task naming what is missing', async () => {
      const rig = await open();
      const { task, question } = await waiting(rig.ledger);
      const first = await exchanged(rig.ledger, question, { scopes: [] });
      const again = { id: fresh('ask'), link: { handleHash: fresh('hash'), kid: 'k1' }, message: 'Again.' };
      const short = await rig.ledger.commitGrant({ stateHash: first.stateHash, grant: first.sealed, again });
      expect(short).toMatchObject({
        kind: 'short',
        missing: ['repo'],
        resumed: [],
        askedAgain: { key: 'github-2', forceConsent: true },
      });
      if (short.askedAgain === null) throw new Error('not asked again');
      const second = await exchanged(rig.ledger, short.askedAgain, { scopes: [] });
      await rig.ledger.commitGrant({ stateHash: second.stateHash, grant: second.sealed, again });
      expect((await rig.ledger.readTask(task.id))?.task).toMatchObject({
        status: 'failed',
        outcome: { code: 4016, facts: { missing: ['repo'] } },
      });
    });

    it('with narrower scopes does not replace a wider token set, unless that one was judged dead', async () => {
      const rig = await open();
      const access = await active(rig.ledger);
      const { connection: wide } = await rig.ledger.commitRefresh({
        connectionId: access.id,
        generation: access.generation,
        grant: grant({ scopes: ['repo', 'admin'] }),
      });
      const ask = async (judgedGeneration: number | null) => {
        const task = await claimed(rig.ledger, { clientId: fresh('client') });
        const { asked } = await stop(rig.ledger, task, [need({ connectionId: access.id, judgedGeneration })]);
        const [question] = asked;
        if (question === undefined) throw new Error('nothing was asked');
        const { stateHash, sealed } = await exchanged(rig.ledger, question, { scopes: ['repo'] });
        const granted = await rig.ledger.commitGrant({ stateHash, grant: sealed, again: null });
        expect(granted.resumed).toEqual([task.id]);
        return sealed;
      };
      const narrow = await ask(null);
      expect((await rig.ledger.readConnection(access.id))?.record).toEqual(wide?.record);
      expect(await orphans(rig)).toContain(narrow.recordKey);
      const replacing = await ask(wide?.generation ?? null);
      expect((await rig.ledger.readConnection(access.id))?.record).toEqual(replacing);
    });

    it('beyond the twentieth of a link is not started', async () => {
      const rig = await open();
      const { question } = await waiting(rig.ledger);
      for (let n = 0; n < 20; n += 1) await pressed(rig.ledger, question);
      await expect(pressed(rig.ledger, question)).rejects.toThrow('too many');
    });
  });
});
