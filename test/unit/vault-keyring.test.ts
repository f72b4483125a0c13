import type { webcrypto } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRefusal, Refusal } from '../../src/errors.ts';
import { keysFromEnvironment, keysFromFile } from '../../src/vault/key-provider.ts';
import { parseKeyText } from '../../src/vault/key-text.ts';
import { generateKey, openKeyring } from '../../src/vault/keyring.ts';
import { printed } from '../support/printing.ts';
import { keyBytes, keyringOf, thrownBy } from '../support/vault-tables.ts';

const A = Buffer.from(keyBytes(1)).toString('base64url');
const B = Buffer.from(keyBytes(2)).toString('base64url');

describe('the text of a keyring', () => {
  test('entries are separated by commas or lines, and the first is the current key', async () => {
    const byComma = await openKeyring(parseKeyText(`2026b:${B}, 2026a:${A}`, 'KEYS'));
    const byLine = await openKeyring(parseKeyText(`# current\n2026b:${B}\r\n\n2026a:${A} # old\n`, 'KEYS'));
    expect([byComma.currentKid, ...byComma.kids]).toEqual(['2026b', '2026b', '2026a']);
    expect(byLine.kids).toEqual(['2026b', '2026a']);
  });

  test('a bare key is taken in base64 and base64url, and has the same kid in both', () => {
    const bytes = Buffer.from(keyBytes(7).map((byte) => byte | 0xf8));
    const text = Buffer.concat([bytes, Buffer.from(keyBytes(8))]);
    const [standard] = parseKeyText(text.toString('base64'), 'KEYS');
    const [url] = parseKeyText(text.toString('base64url'), 'KEYS');
    expect(text.toString('base64')).toMatch(/[+/]/);
    expect(standard).toEqual(url);
    expect(standard?.kid).toMatch(/^k[0-9a-f]{8}$/);
    expect(Buffer.from(standard?.bytes ?? []).equals(text)).toBe(true);
  });

  test('a generated key is an entry that reads back under its own kid', () => {
    const { kid, entry } = generateKey();
    const [read] = parseKeyText(entry.reveal(), 'KEYS');
    const [bare] = parseKeyText(entry.reveal().split(':')[1] ?? '', 'KEYS');
    expect(read?.kid).toBe(kid);
    expect(bare).toEqual(read);
    expect(read?.bytes.length).toBe(32);
    expect(generateKey().kid).not.toBe(kid);
  });

  const short = Buffer.from(keyBytes(3).subarray(0, 31)).toString('base64url');
  test.each([
    ['no key at all', ' \n,# nothing\n', 'KEYS holds no key.', undefined],
    ['a key of 31 bytes', `a:${A},b:${short}`, 'KEYS: entry 2 is too short: a key has at least 32 bytes.', 2],
    ['a bare key of 31 bytes', short, 'KEYS: entry 1 is too short: a key has at least 32 bytes.', 1],
    [
      'a key of 1,025 bytes',
      `a:${Buffer.alloc(1025, keyBytes(1)).toString('base64')}`,
      'KEYS: entry 1 is too long: a key has at most 1024 bytes.',
      1,
    ],
    ['a character outside base64', `a:${A}!`, 'KEYS: entry 1 is not base64 or base64url.', 1],
    ['stray last bits', `a:${A.slice(0, -1)}9`, 'KEYS: entry 1 is not base64 or base64url.', 1],
    ['an empty key', 'a:', 'KEYS: entry 1 is not base64 or base64url.', 1],
    ['a placeholder', `a:${'A'.repeat(43)}`, 'KEYS: entry 1 is a placeholder, not random bytes.', 1],
    ['the same kid twice', `a:${A}\na:${B}`, 'KEYS: entry 2 has the same kid as entry 1.', 2],
    [
      'a kid with other characters',
      `key 1:${A}`,
      'KEYS: entry 1 has a kid that is not 1 to 32 letters, digits, "-" or "_".',
      1,
    ],
    ['its halves swapped', `${A}:prod`, 'KEYS: entry 1 is too short: a key has at least 32 bytes.', 1],
  ])('%s is refused by the number of the entry', (_, text, message, entry) => {
    const act = () => parseKeyText(text, 'KEYS');
    const facts = entry === undefined ? { setting: 'KEYS' } : { setting: 'KEYS', entry };
    expect(act).toThrow(expect.objectContaining({ reason: 'configuration_invalid', message, facts }));
  });

  test('a refusal repeats no part of the text, whatever the text is', () => {
    const part = fc.stringMatching(/^[A-Za-z0-9_+/=!-]{12,60}$/);
    fc.assert(
      fc.property(part, part, fc.constantFrom(':', ',', '\n', ' : '), (left, right, between) => {
        try {
          parseKeyText(`${left}${between}${right}`, 'KEYS');
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal);
          expect(printed(error)).not.toContain(left);
          expect(printed(error)).not.toContain(right);
        }
      }),
    );
  });
});

describe('where the keys come from', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'keyturn-keys-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('the environment and a file give the same keyring', async () => {
    const path = join(folder, 'keys');
    await writeFile(path, `b:${B}\na:${A}\n`);
    const fromFile = await keysFromFile(path).load();
    const fromEnvironment = await keysFromEnvironment({ KEYTURN_VAULT_KEYS: `b:${B},a:${A}` }).load();
    expect(fromFile.kids).toEqual(['b', 'a']);
    expect(fromEnvironment.kids).toEqual(['b', 'a']);
  });

  test('a variable that is not set and a file that is not there are named', async () => {
    const path = join(folder, 'absent');
    const variable = await thrownBy(() => keysFromEnvironment({}).load());
    const file = await thrownBy(() => keysFromFile(path).load());
    expect(variable).toMatchObject({
      reason: 'configuration_invalid',
      message: 'KEYTURN_VAULT_KEYS is not set.',
      facts: { setting: 'KEYTURN_VAULT_KEYS' },
    });
    expect(file).toMatchObject({
      reason: 'configuration_invalid',
      message: `The file of vault keys ${path} cannot be read (ENOENT).`,
    });
  });

  test('a mistake in a file names the file and the entry', async () => {
    const path = join(folder, 'mistaken');
    await writeFile(path, `a:${A}\nb:${B.slice(2)}\n`);
    const error = await thrownBy(() => keysFromFile(path).load());
    expect(error).toMatchObject({ facts: { setting: path, entry: 2 } });
    expect(printed(error)).not.toContain(B.slice(2));
  });
});

describe('a keyring', () => {
  test('a key cannot be read back from a keyring, its derived keys or the bytes it was made from', async () => {
    const bytes = keyBytes(1);
    const keyring = await openKeyring([{ kid: 'a', bytes }]);
    const sealKey = await keyring.sealKey('a', 'vault', 'salt');
    const macKey = await keyring.macKey('a', 'links');
    expect(bytes.every((byte) => byte === 0)).toBe(true);
    for (const key of [sealKey, macKey]) {
      expect(key.extractable).toBe(false);
      await expect(crypto.subtle.exportKey('raw', key)).rejects.toThrow('not extractable');
    }
    for (const form of [
      A,
      Buffer.from(A, 'base64url').toString('hex'),
      Buffer.from(A, 'base64url').join(', '),
    ]) {
      expect(printed(keyring) + printed(sealKey) + printed(macKey)).not.toContain(form);
    }
    expect(JSON.stringify(keyring)).toBe('{"currentKid":"a","kids":["a"]}');
  });

  test('a generated key shows only its kid', () => {
    const made = generateKey();
    expect(printed(made)).not.toContain(made.entry.reveal().split(':')[1]);
  });

  test('purposes, salts and kids never share a key', async () => {
    const keyring = await keyringOf({ a: 1, b: 2 });
    const iv = new Uint8Array(12);
    const fingerprint = async (key: Promise<webcrypto.CryptoKey>) =>
      Buffer.from(await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await key, iv)).toString('hex');
    const purposes = ['vault', 'cookies', 'request-state', 'attempts'] as const;
    const prints = await Promise.all(
      ['a', 'b'].flatMap((kid) =>
        purposes.flatMap((purpose) =>
          ['s', 't'].map((salt) => fingerprint(keyring.sealKey(kid, purpose, salt))),
        ),
      ),
    );
    expect(new Set(prints).size).toBe(16);
    expect(await fingerprint(keyring.sealKey('a', 'vault', 's'))).toBe(prints[0]);
  });

  test('a kid that is not there is refused by its name, each time', async () => {
    const keyring = await keyringOf({ a: 1 });
    for (const act of [
      () => keyring.sealKey('z', 'vault', ''),
      () => keyring.macKey('z', 'links'),
      () => keyring.macKey('z', 'links'),
    ]) {
      expect(await thrownBy(act)).toMatchObject({ reason: 'vault_key_missing', facts: { kid: 'z' } });
    }
    expect(isRefusal(await thrownBy(() => openKeyring([])), 'vault_key_missing')).toBe(true);
  });

  test('a key that the ledger still refers to cannot be retired', async () => {
    const keyring = await keyringOf({ b: 2, a: 1 });
    expect(() => keyring.checkRetired(['a', 'b', 'a'])).not.toThrow();
    expect(() => keyring.checkRetired([])).not.toThrow();
    expect(() => keyring.checkRetired(new Set(['y', 'a', 'x', 'x']))).toThrow(
      expect.objectContaining({ reason: 'vault_key_missing', facts: { kids: ['x', 'y'] } }),
    );
  });
});
