import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MOST_SEALED_LENGTH, openValue, sealValue, type Json } from '../../src/vault/sealed-value.ts';
import { printed } from '../support/printing.ts';
import { keyringOf, thrownBy } from '../support/vault-tables.ts';

const context = ['https://issuer.example', 'alice', 'client-1'];
const expiresAtMs = 1_000_000;
const nowMs = 999_999;
const purposes = ['cookies', 'request-state', 'attempts'] as const;

describe('a sealed value', () => {
  test('any JSON comes back as it was', async () => {
    const keyring = await keyringOf({ a: 1 });
    await fc.assert(
      fc.asyncProperty(
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom(...purposes),
        fc.array(fc.string(), { maxLength: 3 }),
        async (payload, purpose, bound) => {
          const normal = JSON.parse(JSON.stringify(payload)) as Json;
          const text = await sealValue(keyring, purpose, normal, { expiresAtMs, context: bound });
          expect(await openValue(keyring, purpose, text, { nowMs, context: bound })).toEqual(normal);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('needs no escaping in a cookie or URL, and shows nothing of payload or context', async () => {
    const keyring = await keyringOf({ a: 1 });
    const text = await sealValue(keyring, 'cookies', { verifier: 'sesame' }, { expiresAtMs, context });
    expect(text).toMatch(/^[A-Za-z0-9_.-]+$/);
    expect(encodeURIComponent(text)).toBe(text);
    const decoded = text.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
    expect(decoded.join()).not.toMatch(/sesame|verifier|alice|client-1/);
  });

  test('does not open at its expiry or later', async () => {
    const keyring = await keyringOf({ a: 1 });
    const text = await sealValue(keyring, 'cookies', 'x', { expiresAtMs, context });
    expect(await openValue(keyring, 'cookies', text, { nowMs: expiresAtMs - 1, context })).toBe('x');
    expect(await openValue(keyring, 'cookies', text, { nowMs: expiresAtMs, context })).toBeUndefined();
    expect(await openValue(keyring, 'cookies', text, { nowMs: expiresAtMs + 1, context })).toBeUndefined();
  });

  test('does not open for another purpose', async () => {
    const keyring = await keyringOf({ a: 1 });
    for (const made of purposes) {
      const text = await sealValue(keyring, made, 'x', { expiresAtMs, context });
      for (const asked of purposes) {
        const found = await openValue(keyring, asked, text, { nowMs, context });
        expect(found).toBe(made === asked ? 'x' : undefined);
      }
    }
  });

  test.each([
    ['another person', ['https://issuer.example', 'bob', 'client-1']],
    ['another order', ['alice', 'https://issuer.example', 'client-1']],
    ['fewer members', ['https://issuer.example', 'alice']],
    ['members joined otherwise', ['https://issuer.example', 'alice,client-1']],
    ['nothing', []],
  ])('does not open in a context with %s', async (_, other) => {
    const keyring = await keyringOf({ a: 1 });
    const text = await sealValue(keyring, 'request-state', 'x', { expiresAtMs, context });
    expect(await openValue(keyring, 'request-state', text, { nowMs, context: other })).toBeUndefined();
    expect(await openValue(keyring, 'request-state', text, { nowMs, context })).toBe('x');
  });

  test('opens under a previous key, and not once that key is gone or is another one', async () => {
    const text = await sealValue(await keyringOf({ a: 1 }), 'cookies', 'x', { expiresAtMs, context });
    const options = { nowMs, context };
    expect(await openValue(await keyringOf({ b: 2, a: 1 }), 'cookies', text, options)).toBe('x');
    expect(await openValue(await keyringOf({ b: 2 }), 'cookies', text, options)).toBeUndefined();
    expect(await openValue(await keyringOf({ a: 2 }), 'cookies', text, options)).toBeUndefined();
  });

  test('does not open with any one bit flipped or any one character changed', async () => {
    const keyring = await keyringOf({ a: 1 });
    const text = await sealValue(keyring, 'cookies', { n: 1 }, { expiresAtMs, context });
    for (let at = 0; at < text.length; at += 1) {
      for (const bit of [1, 2, 4, 8, 16, 32, 64]) {
        const flipped = String.fromCharCode(text.charCodeAt(at) ^ bit);
        const damaged = text.slice(0, at) + flipped + text.slice(at + 1);
        expect(await openValue(keyring, 'cookies', damaged, { nowMs, context })).toBeUndefined();
      }
    }
  });

  test('text from anywhere opens to nothing and never throws', async () => {
    const keyring = await keyringOf({ a: 1 });
    const text = await sealValue(keyring, 'cookies', 'x', { expiresAtMs, context });
    const [header, , iv, ciphertext, tag] = text.split('.');
    const encoded = fc.oneof(
      fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
      fc
        .record({ alg: fc.constantFrom('dir', 'none', 'A256KW', 'PBES2-HS256+A128KW'), enc: fc.string() })
        .map((value) => Buffer.from(JSON.stringify({ ...value, kid: 'a', slt: 's' })).toString('base64url')),
      fc.constantFrom(header, iv, ciphertext, tag, '', undefined),
      fc.string({ unit: 'binary', maxLength: 40 }),
    );
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(encoded, { minLength: 1, maxLength: 7 }).map((parts) => parts.join('.')),
      fc.nat(text.length - 1).map((length) => text.slice(0, length)),
      fc.string({ minLength: 1, maxLength: 3 }).map((more) => text + more),
    );
    await fc.assert(
      fc.asyncProperty(anything, async (forged) => {
        fc.pre(forged !== text);
        expect(await openValue(keyring, 'cookies', forged, { nowMs, context })).toBeUndefined();
      }),
      { numRuns: 400 },
    );
  });

  test('a longer one than its purpose allows is neither made nor read', async () => {
    const keyring = await keyringOf({ a: 1 });
    for (const purpose of purposes) {
      const limit = MOST_SEALED_LENGTH[purpose];
      const error = await thrownBy(() =>
        sealValue(keyring, purpose, `sesame${'x'.repeat(limit)}`, { expiresAtMs, context }),
      );
      expect(error).toMatchObject({ reason: 'value_too_large', facts: { limit } });
      expect(printed(error)).not.toContain('sesame');
      const most = await sealValue(keyring, purpose, 'x'.repeat(Math.floor(limit * 0.7) - 200), {
        expiresAtMs,
        context,
      });
      expect(most.length).toBeLessThanOrEqual(limit);
      expect(
        await openValue(keyring, purpose, `${most}${'A'.repeat(limit)}`, { nowMs, context }),
      ).toBeUndefined();
    }
  });

  test('an expiry that is not a whole number is a bug, said before anything is sealed', async () => {
    const keyring = await keyringOf({ a: 1 });
    for (const bad of [Number.NaN, Infinity, 1.5]) {
      const error = await thrownBy(() => sealValue(keyring, 'cookies', 1, { expiresAtMs: bad, context }));
      expect(error).toEqual(new TypeError('expiresAtMs is not a whole number'));
    }
  });
});
