import { describe, expect, test } from 'vitest';
import { openVault } from '../../src/vault/vault.ts';
import { keyringOf, memoryTable, thrownBy } from '../support/vault-tables.ts';

describe('the keys at a start', () => {
  test('a new vault starts, and starts again with the same keys', async () => {
    const table = memoryTable();
    const keyring = await keyringOf({ a: 1 });
    await openVault({ keyring, table }).proveKeys([]);
    const rows = new Map(table.rows);
    const vault = openVault({ keyring, table });
    await vault.proveKeys(['a']);
    await vault.probe();
    expect(table.rows).toEqual(rows);
    expect([...rows.keys()]).toEqual(['canary.a']);
  });

  test('a key that changed under its kid stops the start', async () => {
    const table = memoryTable();
    await openVault({ keyring: await keyringOf({ a: 1 }), table }).proveKeys([]);
    for (const referenced of [[], ['a']]) {
      const vault = openVault({ keyring: await keyringOf({ a: 2 }), table });
      expect(await thrownBy(() => vault.proveKeys(referenced))).toMatchObject({
        reason: 'vault_key_missing',
        message: 'The vault key "a" is not the one that was used before under this kid.',
        facts: { kid: 'a' },
      });
      expect(await thrownBy(() => vault.probe())).toMatchObject({ reason: 'vault_key_missing' });
    }
  });

  test('a wrong previous key stops the start as well', async () => {
    const table = memoryTable();
    await openVault({ keyring: await keyringOf({ b: 2, a: 1 }), table }).proveKeys([]);
    const vault = openVault({ keyring: await keyringOf({ b: 2, a: 3 }), table });
    expect(await thrownBy(() => vault.proveKeys([]))).toMatchObject({ facts: { kid: 'a' } });
  });

  test('a kid that the ledger names and nobody configured stops the start, before anything is written', async () => {
    const table = memoryTable();
    const vault = openVault({ keyring: await keyringOf({ b: 2 }), table });
    expect(await thrownBy(() => vault.proveKeys(['a', 'b']))).toMatchObject({
      reason: 'vault_key_missing',
      facts: { kids: ['a'] },
    });
    expect(table.rows.size).toBe(0);
  });

  test('a vault that is not the one of this ledger stops the start', async () => {
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table: memoryTable() });
    expect(await thrownBy(() => vault.proveKeys(['a']))).toMatchObject({
      reason: 'vault_record_unreadable',
      facts: { recordKey: 'canary.a', problem: 'missing', missing: true },
    });
  });

  test('a canary of another kid does not stand for the right one', async () => {
    const table = memoryTable();
    const vault = openVault({ keyring: await keyringOf({ b: 2, a: 1 }), table });
    await vault.proveKeys([]);
    table.rows.set('canary.a', table.rows.get('canary.b') ?? '');
    expect(await thrownBy(() => vault.proveKeys([]))).toMatchObject({
      reason: 'vault_record_unreadable',
      facts: { recordKey: 'canary.a', problem: 'header' },
    });
  });

  test('two nodes that start a new vault at once both start', async () => {
    const good = memoryTable();
    const keyring = await keyringOf({ a: 1 });
    const other = openVault({ keyring, table: good });
    let raced = false;
    const table = {
      ...good,
      set: async (key: string, value: string) => {
        await good.set(key, value);
        if (raced) return;
        raced = true;
        good.rows.delete(key);
        await other.proveKeys([]);
      },
    };
    await openVault({ keyring, table }).proveKeys([]);
    expect(raced).toBe(true);
    await other.probe();
  });

  test('a rotation adds the new key and later drops the old one', async () => {
    const table = memoryTable();
    await openVault({ keyring: await keyringOf({ a: 1 }), table }).proveKeys([]);
    await openVault({ keyring: await keyringOf({ a: 1, b: 2 }), table }).proveKeys(['a']);
    await openVault({ keyring: await keyringOf({ b: 2, a: 1 }), table }).proveKeys(['a', 'b']);
    await openVault({ keyring: await keyringOf({ b: 2 }), table }).proveKeys(['b']);
    expect([...table.rows.keys()]).toEqual(['canary.a', 'canary.b']);
  });
});

describe('the epoch of a vault', () => {
  test('is absent in a new vault, kept, replaced, and outlives a rotation', async () => {
    const table = memoryTable();
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table });
    expect(await vault.epoch()).toBeUndefined();
    await vault.setEpoch(1);
    await vault.setEpoch(2);
    expect(await openVault({ keyring: await keyringOf({ b: 2 }), table }).epoch()).toBe(2);
  });

  test('anything else in its place is refused, not taken for a new vault', async () => {
    const table = memoryTable();
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table });
    for (const text of ['', '-1', '1.5', 'null', '99999999999999999999']) {
      table.rows.set('vault.epoch', text);
      expect(await thrownBy(() => vault.epoch())).toMatchObject({
        reason: 'vault_record_unreadable',
        facts: { recordKey: 'vault.epoch', problem: 'malformed' },
      });
    }
    expect(await thrownBy(() => vault.setEpoch(-1))).toBeInstanceOf(TypeError);
  });
});
