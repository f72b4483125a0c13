import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerEffect } from '../../src/elicitation/answer.ts';
import { declaresExtension, elicitationModes } from '../../src/elicitation/capability.ts';
import { formProblems, readForm, type FormSchema } from '../../src/elicitation/form.ts';
import { ownerOf, samePerson, subjectOf } from '../../src/elicitation/owner.ts';
import { MOST_REASKS, reaskAtMs } from '../../src/elicitation/reask.ts';
import { coversScopes, missingScopes, parseScopes, unionScopes } from '../../src/elicitation/scopes.ts';

describe('what a client can show', () => {
  it.each([
    [undefined, { form: false, url: false }],
    [{ elicitation: {} }, { form: true, url: false }],
    [{ elicitation: { form: {} } }, { form: true, url: false }],
    [{ elicitation: { url: {} } }, { form: false, url: true }],
    [{ elicitation: { form: {}, url: {} } }, { form: true, url: true }],
    [{ elicitation: 'yes' }, { form: false, url: false }],
    [{ elicitation: null }, { form: false, url: false }],
    [{ elicitation: [] }, { form: false, url: false }],
    ['odd', { form: false, url: false }],
  ])('%j means %j', (capabilities, modes) => {
    expect(elicitationModes(capabilities)).toEqual(modes);
  });

  it('is read from anything without a throw, and an extension counts only as an object', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        elicitationModes(value);
        declaresExtension(value, 'x');
      }),
    );
    expect(declaresExtension({ extensions: { x: {} } }, 'x')).toBe(true);
    expect(declaresExtension({ extensions: { x: true } }, 'x')).toBe(false);
  });
});

describe('answers', () => {
  const base = { kind: 'authorize', open: true, acceptedBefore: false, onCancel: 'cancel' } as const;

  it('follow the written rule', () => {
    expect(answerEffect({ ...base, action: 'accept' })).toBe('note');
    expect(answerEffect({ ...base, kind: 'form', action: 'accept' })).toBe('finish');
    expect(answerEffect({ ...base, action: 'decline' })).toBe('decline');
    expect(answerEffect({ ...base, action: 'cancel' })).toBe('cancel');
    expect(answerEffect({ ...base, action: 'cancel', onCancel: 'wait' })).toBe('ignore');
  });

  it('to a question that is not open, or of an unknown kind, change nothing', () => {
    fc.assert(
      fc.property(fc.anything(), fc.boolean(), (action, open) => {
        const known = ['accept', 'decline', 'cancel'].includes(action as string);
        fc.pre(!known || !open);
        expect(answerEffect({ ...base, action, open })).toBe('ignore');
      }),
    );
  });

  it('that decline or dismiss a re-ask never end a wait that an earlier accept keeps alive', () => {
    for (const action of ['decline', 'cancel']) {
      expect(answerEffect({ ...base, action, acceptedBefore: true })).toBe('note');
    }
  });
});

describe('re-asks', () => {
  it('come after half of what remained, before the deadline, and at most twice', () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.integer({ min: 2, max: 1e7 }), (acceptedAtMs, leftMs) => {
        const deadlineMs = acceptedAtMs + leftMs;
        const at = reaskAtMs({ acceptedAtMs, deadlineMs, reasks: 0 });
        if (at !== undefined) {
          expect(at).toBeLessThan(deadlineMs);
          expect(at - acceptedAtMs).toBeGreaterThanOrEqual(leftMs / 2);
        }
        expect(reaskAtMs({ acceptedAtMs, deadlineMs, reasks: MOST_REASKS })).toBeUndefined();
      }),
    );
  });
});

describe('people', () => {
  it('are an issuer and a subject, compared exactly', () => {
    const alice = ownerOf({ issuer: 'https://a.example', subject: 'alice' });
    expect(samePerson(alice, ownerOf({ issuer: 'https://a.example', subject: 'alice' }))).toBe(true);
    expect(samePerson(alice, ownerOf({ issuer: 'https://a.example/', subject: 'alice' }))).toBe(false);
    expect(samePerson(alice, ownerOf({ issuer: 'https://a.example', subject: 'Alice' }))).toBe(false);
    expect(() => ownerOf({ issuer: 'https://a.example#x', subject: 'alice' })).toThrow(TypeError);
  });

  it('of a tenant are named within it', () => {
    expect(subjectOf({ oid: 'o', tid: 't' }, 'oid')).toBe('t/o');
    expect(subjectOf({ oid: 'o' }, 'oid')).toBeUndefined();
    expect(subjectOf({ sub: 7 }, 'sub')).toBeUndefined();
  });
});

describe('scopes', () => {
  it('are sets, whatever the separator and the order', () => {
    expect(parseScopes('repo,read:org')).toEqual(parseScopes('repo read:org'));
    expect(coversScopes(parseScopes('b, a  c'), ['a', 'c'])).toBe(true);
    expect(missingScopes(['a', 'b'], ['b'])).toEqual(['a']);
    expect(unionScopes(['b', 'a'], ['a', 'c'])).toEqual(['a', 'b', 'c']);
  });
});

describe('forms', () => {
  const schema: FormSchema = {
    type: 'object',
    properties: {
      folder: { type: 'string', maxLength: 10 },
      count: { type: 'integer', minimum: 1, maximum: 5 },
      tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, maxItems: 1 },
    },
    required: ['folder'],
  };

  it.each([
    'password',
    'apiKey',
    'api_key',
    'accessToken',
    'client-secret',
    'PIN',
    'oneTimeCode',
    'privateKey',
  ])('do not ask for "%s"', (name) => {
    expect(formProblems({ type: 'object', properties: { [name]: { type: 'string' } } })).toHaveLength(1);
  });

  it('do not hide a secret behind a title, nor ask for addresses', () => {
    const titled = { x: { type: 'string', title: 'Your password' } } as const;
    expect(formProblems({ type: 'object', properties: titled })).toHaveLength(1);
    const link = { x: { type: 'string', format: 'uri' } } as const;
    expect(formProblems({ type: 'object', properties: link })).toHaveLength(1);
    expect(formProblems(schema)).toEqual([]);
  });

  it('take what fits, drop what is unknown, and name each field that does not fit', () => {
    expect(readForm(schema, { folder: 'x', count: 2, more: true })).toEqual({
      ok: true,
      content: { folder: 'x', count: 2 },
    });
    const verdict = readForm(schema, { count: 9, tags: ['c'] });
    expect(verdict.ok).toBe(false);
    if (verdict.ok) return;
    expect(verdict.problems.map((problem) => problem.split(':')[0])).toEqual([
      'content.folder',
      'content.count',
      'content.tags',
    ]);
  });

  it('read anything without a throw', () => {
    fc.assert(
      fc.property(fc.anything(), (content) => {
        expect(typeof readForm(schema, content).ok).toBe('boolean');
      }),
    );
  });
});
