import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { hashHandle, linkHandle } from '../../src/vault/link-handle.ts';
import { keyringOf, thrownBy } from '../support/vault-tables.ts';

test('any node with the same keys makes the same handle again', async () => {
  const one = await linkHandle(await keyringOf({ a: 1 }), 'elicitation-1');
  const other = await linkHandle(await keyringOf({ a: 1, b: 2 }), 'elicitation-1');
  expect(one).toEqual(other);
  expect(one.kid).toBe('a');
  expect(one.handle).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test('handles of different elicitations and of different keys differ', async () => {
  const keyring = await keyringOf({ a: 1, b: 2 });
  const made = await Promise.all([
    linkHandle(keyring, 'elicitation-1'),
    linkHandle(keyring, 'elicitation-2'),
    linkHandle(keyring, 'elicitation-1', 'b'),
  ]);
  expect(new Set(made.map(({ handle }) => handle)).size).toBe(3);
});

test('a handle made before a rotation can still be listed with its kid', async () => {
  const before = await linkHandle(await keyringOf({ a: 1 }), 'elicitation-1');
  const rotated = await keyringOf({ b: 2, a: 1 });
  expect(await linkHandle(rotated, 'elicitation-1', before.kid)).toEqual(before);
  expect(await linkHandle(rotated, 'elicitation-1')).not.toEqual(before);
});

test('a handle whose key is gone is refused by its kid', async () => {
  const keyring = await keyringOf({ b: 2 });
  const error = await thrownBy(() => linkHandle(keyring, 'elicitation-1', 'a'));
  expect(error).toMatchObject({ reason: 'vault_key_missing', facts: { kid: 'a' } });
});

test('the ledger keeps the SHA-256 of a handle', () => {
  expect(hashHandle('abc')).toBe(createHash('sha256').update('abc').digest('base64url'));
  expect(hashHandle('abc')).not.toBe(hashHandle('abd'));
});

test('an empty elicitation id makes no handle', async () => {
  const keyring = await keyringOf({ a: 1 });
  expect(await thrownBy(() => linkHandle(keyring, ''))).toBeInstanceOf(TypeError);
});
