import { describe, expect, test } from 'vitest';
import { REASONS, Refusal, TASK_ERROR_CODES, type Reason } from '../../src/errors.ts';
import { eraOf } from '../../src/mcp/era.ts';
import { readMessage } from '../../src/mcp/json-rpc.ts';
import { originAllowed, originRules } from '../../src/mcp/origin.ts';
import { BUG, wireError } from '../../src/mcp/wire-error.ts';

describe('every refusal', () => {
  test.each(Object.keys(REASONS) as Reason[])('%s has an answer that this revision may give', (reason) => {
    const error = wireError(new Refusal(reason, { facts: { open: 3 } }));
    expect(error.status).toBeGreaterThanOrEqual(200);
    expect(error.status).toBeLessThan(600);
    // Codes of the specification keep their meaning; codes of older revisions are not sent at all.
    expect([-32602, -32603, ...Object.values(TASK_ERROR_CODES)]).toContain(error.code);
    if (error === BUG) expect(error).not.toHaveProperty('data');
    else expect(error.data).toMatchObject({ reason });
  });

  test('that ends a task has the code of its ending', () => {
    for (const [reason, code] of Object.entries(TASK_ERROR_CODES)) {
      expect(wireError(new Refusal(reason as Reason)).code).toBe(code);
    }
  });
});

describe('the era of a message', () => {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
  const message = (params: object) => {
    const read = readMessage({ jsonrpc: '2.0', id: 1, method: 'tools/list', params });
    if (read.kind !== 'request') throw new Error('unreadable');
    return read;
  };

  test.each<[string, object, string | undefined, 'modern' | 'legacy']>([
    ['claims in its body', { _meta: meta }, undefined, 'modern'],
    [
      'claims a version that nobody knows',
      { _meta: { 'io.modelcontextprotocol/protocolVersion': 'x' } },
      undefined,
      'modern',
    ],
    [
      'claims capabilities alone',
      { _meta: { 'io.modelcontextprotocol/clientCapabilities': {} } },
      undefined,
      'modern',
    ],
    ['has a modern header alone', {}, '2026-07-28', 'modern'],
    ['has a header that nobody knows', {}, '2031-01-01', 'modern'],
    ['has an older header', {}, '2025-11-25', 'legacy'],
    ['has neither', {}, undefined, 'legacy'],
    ['has another _meta', { _meta: { progressToken: 1 } }, undefined, 'legacy'],
    ['claims in its body below an older header', { _meta: meta }, '2025-11-25', 'modern'],
  ])('that %s', (_what, params, header, era) => {
    expect(eraOf(message(params), header === undefined ? {} : { 'mcp-protocol-version': header })).toBe(era);
  });
});

describe('on a public host', () => {
  const rules = originRules('https://keyturn.example/base', ['https://web.example/app']);

  test('our own and allowed origins may call, others not, whatever host they name', () => {
    for (const origin of ['https://keyturn.example', 'https://web.example', undefined]) {
      expect(originAllowed(rules, { origin, host: 'anything.example' })).toBe(true);
    }
    for (const origin of [
      'http://keyturn.example',
      'https://keyturn.example.evil',
      'null',
      '',
      'http://localhost',
    ]) {
      expect(originAllowed(rules, { origin, host: 'keyturn.example' })).toBe(false);
    }
  });
});

describe('on loopback', () => {
  const rules = originRules('http://localhost:3000');

  test('hosts that were rebound to this machine are refused', () => {
    for (const host of ['localhost:3000', '127.0.0.1:3000', '[::1]:3000', 'localhost']) {
      expect(originAllowed(rules, { host })).toBe(true);
    }
    for (const host of ['evil.example', 'localhost.evil.example:3000', undefined, '']) {
      expect(originAllowed(rules, { host })).toBe(false);
    }
  });
});
