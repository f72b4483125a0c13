import { EventEmitter } from 'node:events';
import { Keyv, type KeyvStoreAdapter } from 'keyv';
import { describe, expect, test, vi } from 'vitest';
import { secret } from '../../src/secret.ts';
import type { RecordBinding } from '../../src/vault/record-binding.ts';
import { tableFromKeyv } from '../../src/vault/stock-adapter.ts';
import type { VaultTable } from '../../src/vault/vault-table.ts';
import { openVault } from '../../src/vault/vault.ts';
import { keyringOf, memoryTable, thrownBy } from '../support/vault-tables.ts';

const tokens = secret('{"access_token":"sesame"}');
const binding: RecordBinding = {
  recordKey: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  owner: 'https://issuer.example#alice',
  provider: 'github',
  connectionId: 'connection-1',
  generation: 1,
  kind: 'tokens',
};

/** A vault on a good table with some operations replaced once a record is there. */
async function vaultWith(faults: (good: ReturnType<typeof memoryTable>) => Partial<VaultTable>) {
  const good = memoryTable();
  const keyring = await keyringOf({ a: 1 });
  const vault = openVault({ keyring, table: { ...good, ...faults(good) } });
  return { vault, good, healthy: openVault({ keyring, table: good }) };
}

const broken = () => Promise.reject(new Error('connection reset'));

describe('a store that fails', () => {
  test('a failed read is an error, never a missing record', async () => {
    const { vault } = await vaultWith(() => ({ get: broken }));
    for (const act of [
      () => vault.open(binding),
      () => vault.recover(binding),
      () => vault.seal(binding, tokens),
      () => vault.rewrap(binding, 'digest', vault.reserveKey()),
      () => vault.proveKeys([]),
      () => vault.probe(),
      () => vault.epoch(),
    ]) {
      expect(await thrownBy(act)).toMatchObject({
        reason: 'vault_unavailable',
        facts: { operation: 'get', outcome: 'failed' },
        cause: new Error('connection reset'),
      });
    }
  });

  test('a failed write is an error', async () => {
    const { vault } = await vaultWith(() => ({ set: broken }));
    for (const act of [
      () => vault.seal(binding, tokens),
      () => vault.setEpoch(1),
      () => vault.proveKeys([]),
    ]) {
      expect(await thrownBy(act)).toMatchObject({
        reason: 'vault_unavailable',
        facts: { operation: 'set', outcome: 'failed' },
      });
    }
  });

  test('a failed delete is an error', async () => {
    const { vault } = await vaultWith(() => ({ delete: broken }));
    expect(await thrownBy(() => vault.delete(binding.recordKey))).toMatchObject({
      reason: 'vault_unavailable',
      facts: { operation: 'delete', outcome: 'failed' },
    });
  });

  test('an operation that throws at once is the same error', async () => {
    const { vault } = await vaultWith(() => ({
      get: () => {
        throw new Error('closed');
      },
    }));
    expect(await thrownBy(() => vault.open(binding))).toMatchObject({ reason: 'vault_unavailable' });
  });

  test('a write whose acknowledgement was lost is made good by sealing again', async () => {
    let acknowledged = false;
    const { vault } = await vaultWith((good) => ({
      set: async (key, value) => {
        await good.set(key, value);
        if (!acknowledged) {
          acknowledged = true;
          throw new Error('acknowledgement lost');
        }
      },
    }));
    expect(await thrownBy(() => vault.seal(binding, tokens))).toMatchObject({ reason: 'vault_unavailable' });
    const { digest } = await vault.seal(binding, tokens);
    expect((await vault.open(binding, digest)).equals(tokens)).toBe(true);
  });
});

describe('a store that lies', () => {
  test('a write that was reported and lost is found before the caller commits', async () => {
    const { vault } = await vaultWith(() => ({ set: async () => undefined }));
    expect(await thrownBy(() => vault.seal(binding, tokens))).toMatchObject({
      reason: 'vault_unavailable',
      facts: { operation: 'set', outcome: 'lost' },
    });
  });

  test('a write that was cut short is found', async () => {
    const { vault } = await vaultWith((good) => ({
      set: (key, value) => good.set(key, value.slice(0, 255)),
    }));
    expect(await thrownBy(() => vault.seal(binding, tokens))).toMatchObject({
      facts: { operation: 'set', outcome: 'changed' },
    });
  });

  test('a delete that was reported and not done is found', async () => {
    const { vault } = await vaultWith(() => ({ delete: async () => undefined }));
    await vault.seal(binding, tokens);
    expect(await thrownBy(() => vault.delete(binding.recordKey))).toMatchObject({
      reason: 'vault_unavailable',
      facts: { operation: 'delete', outcome: 'still_there' },
    });
  });

  test.each([
    ['an object', {}],
    ['bytes', Buffer.from('a.b')],
    ['an envelope of Keyv that is over', { value: 'a', expires: 1 }],
    ['a number', 7],
  ])('%s instead of a text is an error, and nothing is deleted for it', async (_, value) => {
    const deleted = vi.fn(async () => undefined);
    const { vault } = await vaultWith(() => ({
      get: async () => value as unknown as string,
      delete: deleted,
    }));
    expect(await thrownBy(() => vault.open(binding))).toMatchObject({ reason: 'vault_unavailable' });
    expect(deleted).not.toHaveBeenCalled();
  });

  test('an envelope of Keyv with an expiry in a row is an unreadable record, and is not deleted', async () => {
    const { vault, good } = await vaultWith(() => ({}));
    const text = JSON.stringify({ value: 'a', expires: 1 });
    good.rows.set(binding.recordKey, text);
    expect(await thrownBy(() => vault.open(binding))).toMatchObject({
      reason: 'vault_record_unreadable',
      facts: { problem: 'malformed', missing: false },
    });
    expect(good.rows.get(binding.recordKey)).toBe(text);
  });
});

/** An adapter with the manners of Keyv 5's stock adapters: it throws only if told to, and otherwise emits. */
class StockAdapter extends EventEmitter implements KeyvStoreAdapter {
  opts = {};
  namespace: string | undefined;
  broken = false;
  protected throwing = false;
  readonly rows = new Map<string, string>();

  set throwOnErrors(value: boolean) {
    this.throwing = value;
  }

  #act<T>(work: () => T, otherwise: T): T {
    if (!this.broken) return work();
    const error = new Error('socket closed');
    this.emit('error', error);
    if (this.throwing) throw error;
    return otherwise;
  }
  async get<Value>(key: string): Promise<Value | undefined> {
    return this.#act(() => this.rows.get(key) as Value | undefined, undefined);
  }
  async set(key: string, value: string): Promise<unknown> {
    return this.#act<unknown>(() => void this.rows.set(key, value), undefined);
  }
  async delete(key: string): Promise<boolean> {
    return this.#act(() => this.rows.delete(key), false);
  }
  async clear(): Promise<void> {
    this.rows.clear();
  }
}

/** The same, but its throwing flag does nothing. */
class DeafAdapter extends StockAdapter {
  override set throwOnErrors(_: boolean) {
    this.throwing = false;
  }
}

describe('a stock Keyv adapter', () => {
  test('left to its defaults behind Keyv, a failure looks like a missing record and a good write', async () => {
    const adapter = new StockAdapter();
    const keyv = new Keyv({ store: adapter });
    adapter.broken = true;
    expect(await keyv.set('key', 'value')).toBe(true);
    expect(await keyv.get('key')).toBeUndefined();
  });

  test('carries records, under keys of its own prefix', async () => {
    const adapter = new StockAdapter();
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table: tableFromKeyv(adapter) });
    const { digest } = await vault.seal(binding, tokens);
    expect((await vault.open(binding, digest)).equals(tokens)).toBe(true);
    expect([...adapter.rows.keys()]).toEqual([`keyturn-vault:${binding.recordKey}`]);
    await vault.delete(binding.recordKey);
    await vault.delete(binding.recordKey);
    expect(adapter.rows.size).toBe(0);
  });

  test.each([
    ['that throws when told to', StockAdapter],
    ['whose throwing flag does nothing', DeafAdapter],
  ])('one %s fails each operation aloud', async (_, Adapter) => {
    const adapter = new Adapter();
    const onError = vi.fn();
    const table = tableFromKeyv(adapter, { onError });
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table });
    await vault.seal(binding, tokens);
    adapter.broken = true;
    for (const act of [
      () => vault.open(binding),
      () => vault.recover(binding),
      () => vault.seal({ ...binding, recordKey: vault.reserveKey() }, tokens),
      () => vault.delete(binding.recordKey),
    ]) {
      expect(await thrownBy(act)).toMatchObject({ reason: 'vault_unavailable' });
    }
    await expect(table.set('key', 'value').then(() => table.get('key'))).rejects.toThrow();
    expect(onError).toHaveBeenCalledWith(new Error('socket closed'));
    adapter.broken = false;
    expect((await vault.open(binding)).equals(tokens)).toBe(true);
  });

  test("an adapter's own throwing flags are set, so a failed write is an error by itself", async () => {
    const adapter = Object.assign(new StockAdapter(), { throwOnConnectError: false });
    const table = tableFromKeyv(adapter);
    adapter.broken = true;
    await expect(table.set('key', 'value')).rejects.toThrow('socket closed');
    expect(adapter.throwOnConnectError).toBe(true);
  });

  test('one that answers false to a write is not believed', async () => {
    const adapter = new StockAdapter();
    adapter.set = async () => false;
    const vault = openVault({ keyring: await keyringOf({ a: 1 }), table: tableFromKeyv(adapter) });
    expect(await thrownBy(() => vault.seal(binding, tokens))).toMatchObject({
      reason: 'vault_unavailable',
      facts: { operation: 'set', outcome: 'failed' },
    });
  });

  test('an error between two requests reaches the operator, not the process', async () => {
    const adapter = new StockAdapter();
    const onError = vi.fn();
    const vault = openVault({
      keyring: await keyringOf({ a: 1 }),
      table: tableFromKeyv(adapter, { onError }),
    });
    adapter.emit('error', new Error('idle connection dropped'));
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('idle connection dropped'));
    expect(await vault.recover(binding)).toBeUndefined();
  });
});
