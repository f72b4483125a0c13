import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Refusal } from '../../src/errors.ts';
import { secret } from '../../src/secret.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { vaultTable } from '../../src/store/vault-table.ts';
import type { Keyring } from '../../src/vault/keyring.ts';
import type { RecordBinding } from '../../src/vault/record-binding.ts';
import type { VaultTable } from '../../src/vault/vault-table.ts';
import { MOST_PLAINTEXT_BYTES, openVault } from '../../src/vault/vault.ts';
import { printed } from '../support/printing.ts';
import { keyringOf, memoryTable, thrownBy } from '../support/vault-tables.ts';

const tokens = secret('{"access_token":"sesame"}');

function bindingOf(recordKey: string): RecordBinding {
  return {
    recordKey,
    owner: 'https://issuer.example#alice',
    provider: 'github',
    connectionId: 'connection-1',
    generation: 3,
    kind: 'tokens',
    epoch: 1,
  };
}

async function vaultOf(keyring?: Keyring) {
  const table = memoryTable();
  return { table, vault: openVault({ keyring: keyring ?? (await keyringOf({ a: 1 })), table }) };
}

describe('a record', () => {
  test('comes back as it was sealed, whatever the text', async () => {
    const { vault } = await vaultOf();
    const texts = fc.string({ unit: 'binary', maxLength: 300 }).filter((text) => text.isWellFormed());
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const binding = bindingOf(vault.reserveKey());
        const { digest, kid } = await vault.seal(binding, secret(text));
        expect((await vault.open(binding, digest)).reveal()).toBe(text);
        expect((await vault.open(binding)).reveal()).toBe(text);
        expect(kid).toBe('a');
      }),
      { numRuns: 60 },
    );
  });

  test('rests as a compact JWE with dir and A256GCM that shows neither owner nor plaintext', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    await vault.seal(binding, tokens);
    const text = table.rows.get(binding.recordKey) ?? '';
    const parts = text.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
    expect(parts).toHaveLength(5);
    expect(JSON.parse(parts[0] ?? '')).toEqual({
      typ: 'keyturn-record',
      fmt: 1,
      alg: 'dir',
      enc: 'A256GCM',
      kid: 'a',
      rec: binding.recordKey,
      own: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      prv: 'github',
      con: 'connection-1',
      gen: 3,
      knd: 'tokens',
      epo: 1,
    });
    expect(parts.join('\n')).not.toMatch(/alice|issuer\.example|sesame/);
  });

  test('keys are fresh and fit for any store', async () => {
    const { vault } = await vaultOf();
    const keys = Array.from({ length: 1000 }, () => vault.reserveKey());
    expect(new Set(keys).size).toBe(1000);
    expect(keys.every((key) => /^[A-Za-z0-9_-]{32}$/.test(key))).toBe(true);
  });

  test('64 KiB are sealed and opened; one byte more is refused and nothing is written', async () => {
    const { vault, table } = await vaultOf();
    const binding = { ...bindingOf(vault.reserveKey()), provider: 'p'.repeat(2048) };
    const most = secret('é'.repeat(MOST_PLAINTEXT_BYTES / 2));
    await vault.seal(binding, most);
    expect((await vault.open(binding)).equals(most)).toBe(true);

    const other = bindingOf(vault.reserveKey());
    const error = await thrownBy(() => vault.seal(other, secret(`${most.reveal()}x`)));
    expect(error).toMatchObject({ reason: 'value_too_large', facts: { bytes: 65_537, limitBytes: 65_536 } });
    expect(table.rows.has(other.recordKey)).toBe(false);
  });

  const elsewhere: Record<string, Partial<RecordBinding>> = {
    'another subject': { owner: 'https://issuer.example#bob' },
    'another issuer': { owner: 'https://other.example#alice' },
    'another provider': { provider: 'gitlab' },
    'another connection': { connectionId: 'connection-2' },
    'another generation': { generation: 4 },
    'another kind': { kind: 'credential' },
    'another epoch': { epoch: 2 },
  };
  test.each(Object.entries(elsewhere))('does not open for %s', async (_, change) => {
    const { vault } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    const { digest } = await vault.seal(binding, tokens);
    for (const known of [digest, undefined]) {
      const error = await thrownBy(() => vault.open({ ...binding, ...change }, known));
      expect(error).toMatchObject({
        reason: 'vault_record_unreadable',
        facts: { recordKey: binding.recordKey, problem: 'header', missing: false },
      });
    }
  });

  test('does not open for a binding without its epoch, nor one without epoch for any', async () => {
    const { vault } = await vaultOf();
    const { epoch, ...without } = bindingOf(vault.reserveKey());
    await vault.seal(without, tokens);
    const error = await thrownBy(() => vault.open({ ...without, epoch: epoch ?? 0 }));
    expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { problem: 'header' } });
    expect((await vault.open(without)).equals(tokens)).toBe(true);
  });

  test('swapped with any other record, neither opens, not even where only the record key differs', async () => {
    const part = fc.record({
      owner: fc.constantFrom('https://issuer.example#alice', 'https://issuer.example#bob'),
      provider: fc.constantFrom('github', 'gitlab'),
      connectionId: fc.constantFrom('c1', 'c2'),
      generation: fc.nat(2),
      kind: fc.constantFrom('tokens' as const, 'credential' as const),
    });
    const { vault, table } = await vaultOf();
    await fc.assert(
      fc.asyncProperty(part, part, async (one, other) => {
        const first = { ...one, recordKey: vault.reserveKey() };
        const second = { ...other, recordKey: vault.reserveKey() };
        await vault.seal(first, secret('first'));
        await vault.seal(second, secret('second'));
        const [a, b] = [table.rows.get(first.recordKey) ?? '', table.rows.get(second.recordKey) ?? ''];
        table.rows.set(first.recordKey, b).set(second.recordKey, a);
        for (const binding of [first, second]) {
          const error = await thrownBy(() => vault.open(binding));
          expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { problem: 'header' } });
        }
      }),
      { numRuns: 60 },
    );
  });

  test('another authentic record under the same key is found by its digest', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    const { digest } = await vault.seal(binding, tokens);
    table.rows.clear();
    await vault.seal(binding, secret('rolled back'));
    const error = await thrownBy(() => vault.open(binding, digest));
    expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { problem: 'digest' } });
  });

  test('does not open with any one bit flipped in any part', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    await vault.seal(binding, tokens);
    const text = table.rows.get(binding.recordKey) ?? '';
    for (let at = 0; at < text.length; at += 1) {
      for (const bit of [1, 2, 4, 8, 16, 32, 64]) {
        const flipped = String.fromCharCode(text.charCodeAt(at) ^ bit);
        table.rows.set(binding.recordKey, text.slice(0, at) + flipped + text.slice(at + 1));
        const error = await thrownBy(() => vault.open(binding));
        expect(error).toBeInstanceOf(Refusal);
        expect(['vault_record_unreadable', 'vault_key_missing']).toContain((error as Refusal).reason);
      }
    }
  });

  test('with anything else in its place is refused, never returned and never a crash', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    await vault.seal(binding, tokens);
    const text = table.rows.get(binding.recordKey) ?? '';
    const parts = text.split('.');
    const part = fc.oneof(
      fc.constantFrom(...parts),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.base64String(),
    );
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.nat(text.length - 1).map((length) => text.slice(0, length)),
      fc.array(part, { minLength: 4, maxLength: 6 }).map((some) => some.join('.')),
      fc.constant('A'.repeat(200_000)),
    );
    await fc.assert(
      fc.asyncProperty(anything, async (damaged) => {
        fc.pre(damaged !== text);
        table.rows.set(binding.recordKey, damaged);
        const error = await thrownBy(() => vault.open(binding));
        expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { missing: false } });
      }),
      { numRuns: 300 },
    );
  });

  test('that is not there is told apart from one that is damaged', async () => {
    const { vault } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    expect(await thrownBy(() => vault.open(binding, 'digest'))).toMatchObject({
      reason: 'vault_record_unreadable',
      facts: { recordKey: binding.recordKey, problem: 'missing', missing: true },
    });
    expect(await vault.recover(binding)).toBeUndefined();
  });

  test('deleted by its key is gone; deleting it again is fine', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    await vault.seal(binding, tokens);
    await vault.delete(binding.recordKey);
    await vault.delete(binding.recordKey);
    expect(table.rows.size).toBe(0);
  });

  test.each([
    ['recordKey', { recordKey: 'short' }],
    ['recordKey', { recordKey: 'canary.aaaaaaaaaaaaaaaa' }],
    ['provider', { provider: '' }],
    ['connectionId', { connectionId: 'c'.repeat(2049) }],
    ['owner', { owner: '' }],
    ['generation', { generation: -1 }],
    ['generation', { generation: Number.NaN }],
    ['epoch', { epoch: 0.5 }],
    ['kind', { kind: 'other' as 'tokens' }],
  ])('a binding with a senseless %s is a bug, said by its name', async (name, change) => {
    const { vault, table } = await vaultOf();
    const binding = { ...bindingOf(vault.reserveKey()), ...change };
    const error = await thrownBy(() => vault.seal(binding, tokens));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toMatch(new RegExp(`^${name} `));
    expect(table.rows.size).toBe(0);
  });

  test('a plaintext that UTF-8 would change is not sealed', async () => {
    const { vault, table } = await vaultOf();
    const error = await thrownBy(() => vault.seal(bindingOf(vault.reserveKey()), secret('sesame\ud800')));
    expect(error).toBeInstanceOf(TypeError);
    expect(printed(error)).not.toContain('sesame');
    expect(table.rows.size).toBe(0);
  });
});

test('owners that differ only in what UTF-8 cannot tell apart are different owners', async () => {
  const { vault } = await vaultOf();
  const binding = { ...bindingOf(vault.reserveKey()), owner: 'https://issuer.example#\ud800' };
  await vault.seal(binding, tokens);
  const error = await thrownBy(() => vault.open({ ...binding, owner: 'https://issuer.example#\ud801' }));
  expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { problem: 'header' } });
});

describe('a reserved key that is in use', () => {
  test('an answer that an earlier holder sealed is recovered with what the ledger needs', async () => {
    const { vault } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    const sealed = await vault.seal(binding, tokens);
    const found = await vault.recover(binding);
    expect(found?.plaintext.equals(tokens)).toBe(true);
    expect({ digest: found?.digest, kid: found?.kid }).toEqual(sealed);
  });

  test('sealing the same again gives the same record; anything else never overwrites it', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    const sealed = await vault.seal(binding, tokens);
    const text = table.rows.get(binding.recordKey);
    expect(await vault.seal(binding, tokens)).toEqual(sealed);
    for (const act of [
      () => vault.seal(binding, secret('other')),
      () => vault.seal({ ...binding, generation: 4 }, tokens),
    ]) {
      expect(await thrownBy(act)).toMatchObject({
        reason: 'vault_record_exists',
        facts: { recordKey: binding.recordKey },
      });
    }
    expect(table.rows.get(binding.recordKey)).toBe(text);
  });
});

describe('rotation of keys', () => {
  test('old records open under the previous key, new ones are sealed under the current one', async () => {
    const table = memoryTable();
    const before = openVault({ keyring: await keyringOf({ a: 1 }), table });
    const old = bindingOf(before.reserveKey());
    const { digest } = await before.seal(old, tokens);

    const after = openVault({ keyring: await keyringOf({ b: 2, a: 1 }), table });
    expect((await after.open(old, digest)).equals(tokens)).toBe(true);
    expect((await after.seal(bindingOf(after.reserveKey()), tokens)).kid).toBe('b');
    expect(after.currentKid).toBe('b');
  });

  test('a re-wrapped record has the same meaning under the current key, and the old one stays', async () => {
    const table = memoryTable();
    const before = openVault({ keyring: await keyringOf({ a: 1 }), table });
    const old = bindingOf(before.reserveKey());
    const { digest } = await before.seal(old, tokens);

    const both = openVault({ keyring: await keyringOf({ b: 2, a: 1 }), table });
    const reserved = both.reserveKey();
    const moved = await both.rewrap(old, digest, reserved);
    expect(moved).toEqual({ recordKey: reserved, kid: 'b', digest: expect.any(String) });
    expect((await both.open(old, digest)).equals(tokens)).toBe(true);
    expect(await both.rewrap(old, digest, reserved)).toEqual(moved);

    const after = openVault({ keyring: await keyringOf({ b: 2 }), table });
    expect((await after.open({ ...old, recordKey: reserved }, moved.digest)).equals(tokens)).toBe(true);
    const error = await thrownBy(() => after.open(old, digest));
    expect(error).toMatchObject({ reason: 'vault_key_missing', facts: { kid: 'a' } });
  });

  test('a record that the ledger does not mean is not re-wrapped', async () => {
    const { vault, table } = await vaultOf();
    const binding = bindingOf(vault.reserveKey());
    await vault.seal(binding, tokens);
    const reserved = vault.reserveKey();
    const error = await thrownBy(() => vault.rewrap(binding, 'another digest', reserved));
    expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { problem: 'digest' } });
    expect(table.rows.has(reserved)).toBe(false);
  });

  test('another key under the same kid opens nothing', async () => {
    const table = memoryTable();
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table });
    const binding = bindingOf(vault.reserveKey());
    await vault.seal(binding, tokens);
    const mistaken = openVault({ keyring: await keyringOf({ a: 2 }), table });
    const error = await thrownBy(() => mistaken.open(binding));
    expect(error).toMatchObject({ reason: 'vault_record_unreadable', facts: { missing: false } });
  });
});

describe("on the ledger's own database", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'keyturn-vault-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('records outlive a restart, and a damaged database is never taken for a missing record', async () => {
    const file = join(folder, 'ledger.sqlite');
    const keyring = await keyringOf({ a: 1 });
    const before = await openSqlite({ file });
    const first = openVault({ keyring, table: vaultTable(before) });
    await first.proveKeys([]);
    await first.setEpoch(1);
    const binding = bindingOf(first.reserveKey());
    const gone = bindingOf(first.reserveKey());
    await first.seal(gone, tokens);
    await first.delete(gone.recordKey);
    const { digest, kid } = await first.seal(binding, tokens);
    await before.close();

    const after = await openSqlite({ file });
    const second = openVault({ keyring, table: vaultTable(after) });
    await second.proveKeys([kid]);
    expect(await second.epoch()).toBe(1);
    expect((await second.open(binding, digest)).equals(tokens)).toBe(true);
    expect(await second.recover(gone)).toBeUndefined();

    const other = new DatabaseSync(file);
    other.exec('DROP TABLE vault_records');
    other.close();
    const error = await thrownBy(() => second.recover(binding));
    expect(error).toMatchObject({ reason: 'vault_unavailable', facts: { operation: 'get' } });
    await after.close();
  });
});

describe('what a vault shows', () => {
  test('neither plaintext nor owner nor key is in anything it returns or throws', async () => {
    const keyring = await keyringOf({ a: 1 });
    const { vault, table } = await vaultOf(keyring);
    const binding = bindingOf(vault.reserveKey());
    const shown: unknown[] = [vault, await vault.seal(binding, tokens), await vault.open(binding)];
    shown.push(await vault.recover(binding));
    shown.push(await thrownBy(() => vault.seal(binding, secret('sesame too'))));
    shown.push(await thrownBy(() => vault.open({ ...binding, generation: 9 })));
    shown.push(await thrownBy(() => vault.open(binding, 'wrong')));
    shown.push(await thrownBy(() => openVault({ keyring, table: failing }).seal(binding, tokens)));
    table.rows.set(binding.recordKey, 'sesame.sesame.sesame.sesame.sesame');
    shown.push(await thrownBy(() => vault.open(binding)));
    const text = shown.map(printed).join('\n');
    expect(text).toContain('vault_unavailable');
    expect(text).not.toMatch(/sesame|alice|issuer\.example/);
  });
});

const failing: VaultTable = {
  get: async () => undefined,
  set: () => Promise.reject(new Error('disk full')),
  delete: async () => undefined,
};
