import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeHeaderValue, encodeHeaderValue } from '../../src/mcp/header-value.ts';
import { paramHeaderProblem, readParamHeaders, type ParamHeader } from '../../src/mcp/param-headers.ts';

describe('a header value', () => {
  test('means the text that it was made of, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (words) => {
        const value = encodeHeaderValue(words);
        expect(value).toMatch(/^[\x20-\x7e]*$/);
        expect(decodeHeaderValue(value)).toBe(words);
        // Spaces around it belong to HTTP, not to the value.
        expect(decodeHeaderValue(` \t${value}  `)).toBe(words);
      }),
    );
  });

  test.each([
    ['us-west1', 'us-west1'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
  ])('%j is written as the specification writes it', (words, value) => {
    expect(encodeHeaderValue(words)).toBe(value);
    expect(decodeHeaderValue(value)).toBe(words);
  });

  test.each([
    '=?base64?SGVsbG8?=',
    '=?base64?SGVs!G8=?=',
    '=?base64?/w==?=',
    'caf\u00e9',
    'a\u0000b',
    'a\nb',
  ])('%j is not one', (value) => {
    expect(decodeHeaderValue(value)).toBeUndefined();
  });

  test.each(['=?base64?SGVsbG8=', 'SGVsbG8=?=', '=?BASE64?SGVsbG8=?=', '=?base64?='])(
    '%j is meant literally',
    (value) => {
      expect(decodeHeaderValue(value)).toBe(value);
    },
  );
});

describe('mirrored arguments', () => {
  const declared = (properties: object) => readParamHeaders({ type: 'object', properties });

  test('are found along properties, at any depth', () => {
    expect(
      declared({
        region: { type: 'string', 'x-mcp-header': 'Region' },
        place: { type: 'object', properties: { shard: { type: 'integer', 'x-mcp-header': 'X-Shard' } } },
        plain: { type: 'string' },
      }),
    ).toEqual({
      problems: [],
      headers: [
        { header: 'mcp-param-region', path: ['region'], type: 'string' },
        { header: 'mcp-param-x-shard', path: ['place', 'shard'], type: 'integer' },
      ],
    });
  });

  test.each<[string, object]>([
    ['an empty name', { a: { type: 'string', 'x-mcp-header': '' } }],
    ['a name with a space', { a: { type: 'string', 'x-mcp-header': 'A B' } }],
    ['a name with a line break', { a: { type: 'string', 'x-mcp-header': 'A\r\nB' } }],
    ['a name that is a number', { a: { type: 'string', 'x-mcp-header': 5 } }],
    ['a number', { a: { type: 'number', 'x-mcp-header': 'A' } }],
    ['an object', { a: { type: 'object', 'x-mcp-header': 'A' } }],
    ['no type', { a: { 'x-mcp-header': 'A' } }],
    ['an item of a list', { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } }],
    ['one of several', { a: { anyOf: [{ type: 'string', 'x-mcp-header': 'A' }] } }],
    [
      'further properties',
      { a: { type: 'object', additionalProperties: { type: 'string', 'x-mcp-header': 'A' } } },
    ],
    [
      'the same name in other letters',
      { a: { type: 'string', 'x-mcp-header': 'Region' }, b: { type: 'string', 'x-mcp-header': 'REGION' } },
    ],
  ])('may not be declared on %s', (_what, properties) => {
    expect(declared(properties).problems).toHaveLength(1);
  });

  test('agree with the headers that a client makes of them, and with no others', () => {
    const fields: ParamHeader[] = [
      { header: 'mcp-param-t', path: ['t'], type: 'string' },
      { header: 'mcp-param-n', path: ['in', 'n'], type: 'integer' },
      { header: 'mcp-param-b', path: ['b'], type: 'boolean' },
    ];
    fc.assert(
      fc.property(fc.string(), fc.maxSafeInteger(), fc.boolean(), fc.string(), (t, n, b, other) => {
        const args = { t, in: { n }, b };
        const headers = {
          'mcp-param-t': encodeHeaderValue(t),
          'mcp-param-n': String(n),
          'mcp-param-b': String(b),
        };
        expect(paramHeaderProblem(fields, args, headers)).toBeUndefined();
        expect(paramHeaderProblem(fields, args, { ...headers, 'mcp-param-b': String(!b) })).toBeDefined();
        if (other !== t) {
          const wrong = { ...headers, 'mcp-param-t': encodeHeaderValue(other) };
          expect(paramHeaderProblem(fields, args, wrong)).toBeDefined();
        }
      }),
    );
  });

  test('that are missing or null need no header', () => {
    const fields: ParamHeader[] = [{ header: 'mcp-param-t', path: ['t'], type: 'string' }];
    expect(paramHeaderProblem(fields, {}, {})).toBeUndefined();
    expect(paramHeaderProblem(fields, { t: null }, {})).toBeUndefined();
    expect(paramHeaderProblem(fields, undefined, {})).toBeUndefined();
    expect(paramHeaderProblem(fields, { t: '' }, {})).toBeDefined();
    // Two headers of one name are none.
    expect(paramHeaderProblem(fields, { t: 'a' }, { 'mcp-param-t': ['a', 'a'] })).toBeDefined();
  });
});
