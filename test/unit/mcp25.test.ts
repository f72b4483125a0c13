import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newAskId, newFirstId, readAskId } from '../../src/mcp/rev-2025-11-25/ask-id.ts';
import { introduction, readClient } from '../../src/mcp/rev-2025-11-25/client.ts';
import { textLinkAllowed } from '../../src/mcp/delivery.ts';
import { openGiven } from '../../src/mcp/rev-2025-11-25/given.ts';
import { HOST_QUIRKS } from '../../src/mcp/rev-2025-11-25/host-quirks.ts';
import { ignoreTask } from '../../src/mcp/rev-2025-11-25/ignore-task.ts';
import { growing } from '../../src/mcp/rev-2025-11-25/progress.ts';
import { openPrompts } from '../../src/mcp/rev-2025-11-25/prompts.ts';
import { REVISIONS } from '../../src/mcp/rev-2025-11-25/revisions.ts';

describe('progress', () => {
  test('always grows, whatever the work says', () => {
    const said = fc.option(
      fc.record(
        {
          done: fc.double({ noNaN: true, min: 0, max: 1e6 }),
          total: fc.double({ noNaN: true, min: 0, max: 1e6 }),
        },
        { requiredKeys: [] },
      ),
    );
    fc.assert(
      fc.property(fc.array(said, { maxLength: 200 }), (steps) => {
        const next = growing();
        let last = -Infinity;
        for (const step of steps) {
          const { progress, total } = next(step);
          expect(progress).toBeGreaterThan(last);
          if (total !== undefined) expect(progress).toBeLessThanOrEqual(total);
          last = progress;
        }
      }),
    );
  });

  test('is what the work says at every new step, and stays below the next step between them', () => {
    const next = growing();
    expect(next({ done: 1, total: 3 })).toEqual({ progress: 1, total: 3 });
    for (let beat = 0; beat < 100; beat += 1) expect(next({ done: 1, total: 3 }).progress).toBeLessThan(2);
    expect(next({ done: 2, total: 3 })).toEqual({ progress: 2, total: 3 });
  });
});

describe('ids of questions', () => {
  test('name task and key, whatever they contain, and are never the same twice', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, unit: 'grapheme' }),
        fc.string({ minLength: 1 }),
        (taskId, key) => {
          const id = newAskId(taskId, key);
          if (id.length <= 1_024) expect(readAskId(id)).toEqual({ kind: 'task', taskId, key });
          expect(newAskId(taskId, key)).not.toBe(id);
        },
      ),
    );
    expect(readAskId(newFirstId())).toEqual({ kind: 'first' });
  });

  test.each([
    [17],
    [null],
    ['ask'],
    ['ask/a'],
    ['ask/a/b'],
    ['ask/a/b/c/d'],
    ['ask/%/b/c'],
    ['other/a/b/c'],
    ['x'.repeat(2_000)],
  ])('are not %j', (id) => {
    expect(readAskId(id)).toBeUndefined();
  });
});

describe('a client', () => {
  const said = (protocolVersion: unknown, capabilities: unknown, name: unknown = 'host') => ({
    protocolVersion,
    capabilities,
    clientInfo: { name, version: '1' },
  });

  test.each([
    ['nothing', undefined, { form: false, url: false }],
    ['an empty object', { elicitation: {} }, { form: true, url: false }],
    ['form', { elicitation: { form: {} } }, { form: true, url: false }],
    ['url', { elicitation: { url: {} } }, { form: false, url: true }],
    ['both', { elicitation: { form: {}, url: {} } }, { form: true, url: true }],
    ['a text', { elicitation: 'yes' }, { form: false, url: false }],
    ['a list', { elicitation: [] }, { form: false, url: false }],
  ])('that declares %s shows what it declared', (_, capabilities, modes) => {
    expect(readClient(said('2025-11-25', capabilities)).modes).toEqual(modes);
  });

  test('shows no more than its revision knows', () => {
    const both = { elicitation: { form: {}, url: {} }, tasks: {} };
    expect(readClient(said('2025-06-18', both))).toMatchObject({
      modes: { form: true, url: false },
      tasks: false,
    });
    expect(readClient(said('2025-03-26', both)).modes).toEqual({ form: false, url: false });
  });

  test('that is known to draw no forms is asked none, until it declares URL mode', () => {
    for (const { name } of HOST_QUIRKS.filter((quirk) => quirk.drawsNoForms)) {
      for (const known of [name, `${name} (via mcp-remote 0.15.1)`]) {
        expect(readClient(said('2025-11-25', { elicitation: {} }, known)).modes.form).toBe(false);
      }
      const both = readClient(said('2025-11-25', { elicitation: { form: {}, url: {} } }, name));
      expect(both.modes).toEqual({ form: true, url: true });
    }
  });

  test('says the same again on another node', () => {
    for (const revision of Object.keys(REVISIONS)) {
      for (const capabilities of [
        {},
        { elicitation: {} },
        { elicitation: { url: {} } },
        { elicitation: { form: {}, url: {} } },
      ]) {
        const { tasks: _, ...client } = readClient(said(revision, capabilities));
        expect(readClient(introduction({ ...client, tasks: false }))).toMatchObject(client);
      }
    }
  });

  test.each([
    [undefined],
    [null],
    [7],
    ['text'],
    [[]],
    [{ clientInfo: 7, capabilities: 'x', protocolVersion: {} }],
  ])('that says %j is taken for one that can do nothing', (params) => {
    expect(readClient(params)).toEqual({
      revision: '2025-11-25',
      name: null,
      modes: { form: false, url: false },
      tasks: false,
    });
  });
});

test('links as text are for nobody, everybody, or clients by name', () => {
  expect(textLinkAllowed({ textLink: false }, 'a')).toBe(false);
  expect(textLinkAllowed({ textLink: true }, null)).toBe(true);
  expect(textLinkAllowed({ textLink: ['a'] }, 'a')).toBe(true);
  expect(textLinkAllowed({ textLink: ['a'] }, 'b')).toBe(false);
  expect(textLinkAllowed({ textLink: [''] }, null)).toBe(false);
});

test('a revision without tasks ignores the field of a call, in a batch as well', () => {
  const client = (protocolVersion: string) => readClient({ protocolVersion });
  const call = { method: 'tools/call', params: { name: 'a', task: { ttl: 1 } } };
  expect(ignoreTask(client('2025-11-25'), call)).toEqual(call);
  const plain = { method: 'tools/call', params: { name: 'a' } };
  expect(ignoreTask(client('2025-03-26'), [call, 'odd'])).toEqual([plain, 'odd']);
});

describe('a question', () => {
  test('is shown by one stream; when that one ends, the others are woken', () => {
    const prompts = openPrompts();
    const [one, two] = [{}, {}];
    let woken = 0;
    const wake = (): void => {
      woken += 1;
    };
    expect(prompts.take('q', one, () => undefined)).toBe(true);
    expect(prompts.take('q', one, () => undefined)).toBe(true);
    expect(prompts.take('q', two, wake)).toBe(false);
    prompts.release('q', one, () => undefined);
    expect(woken).toBe(1);
    expect(prompts.take('q', two, wake)).toBe(true);
    prompts.release('q', two, wake);
    expect(prompts.size()).toBe(0);
  });

  test('whose answer did not fit says so once, to the stream that shows it', () => {
    const prompts = openPrompts();
    const [one, two] = [{}, {}];
    prompts.take('q', one, () => undefined);
    prompts.misfit('q', ['content.name: is required']);
    expect(prompts.takeProblems('q', two)).toBeNull();
    expect(prompts.takeProblems('q', one)).toEqual(['content.name: is required']);
    expect(prompts.takeProblems('q', one)).toBeNull();
    prompts.misfit('unknown', ['x']);
    expect(prompts.size()).toBe(1);
  });
});

test('a session remembers its latest links and reports each that is done with once', () => {
  const given = openGiven();
  for (let many = 0; many < 250; many += 1) given.add(`link-${many}`, 'task');
  expect(given.has('link-0')).toBe(false);
  expect(given.has('link-249')).toBe(true);
  given.add('other', 'elsewhere');
  const done = given.takeDone('task', ['link-249']);
  expect(done).toContain('link-248');
  expect(done).not.toContain('link-249');
  expect(done).not.toContain('other');
  expect(given.takeDone('task', ['link-249'])).toEqual([]);
});
