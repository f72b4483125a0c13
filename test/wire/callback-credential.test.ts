/** A key that the person types: what is wrong with it is said beside its field, and nothing wrong is stored. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { FAULTLESS } from '../support/fake-provider-switches.ts';
import { openCallbackWorld, type CallbackWorld, type Step, type Visitor } from '../support/callback-world.ts';

let scene: CallbackWorld;
let alice: Visitor;
let taskId: string;
let link: string;

beforeAll(async () => {
  scene = await openCallbackWorld();
});

afterAll(async () => {
  await scene.close();
});

beforeEach(async () => {
  await scene.disconnect('alice');
  scene.fake.set({
    ...FAULTLESS,
    userinfo: { status: 200, body: { id: 'k-1' } },
    api: { status: 200, body: {} },
  });
  ({ taskId, link } = await scene.stopped('alice', { job: 'fetch_keyed' }));
  alice = scene.visitor();
  await alice.signIn(link, 'alice');
});

async function save(fields: Record<string, string>): Promise<Step> {
  const { page } = await alice.get(link);
  const form = page.forms.find(({ buttons }) => buttons.some(({ value }) => value === 'save'));
  return alice.post(link, { ...Object.fromEntries(form?.fields ?? []), ...fields, action: 'save' });
}

test('a good key is stored, and the task goes on', async () => {
  const done = await save({ key: '  key-canary-1  ', site: 'my-site' });
  expect(done.status).toBe(200);
  expect(done.page.title).toContain('Saved');
  expect(done.html).not.toContain('canary');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
  expect(scene.logLines.join('')).not.toContain('key-canary-1');
});

test.each([
  ['no key', { key: '' }, 'API key'],
  ['only spaces', { key: '   ' }, 'API key'],
  ['a key that is too long', { key: 'c'.repeat(101) }, 'API key'],
  ['a key with a line break', { key: 'canary\r\nx-evil: 1' }, 'API key'],
  ['a key in letters that no header can hold', { key: 'ключ-canary' }, 'API key'],
  ['another field that is too long', { key: 'canary', site: 's'.repeat(21) }, 'Site'],
])(
  '%s: the form comes again, names the field, and shows nothing that was typed',
  async (_what, fields, label) => {
    const calls = scene.fake.calls.length;
    const again = await save(fields);
    expect(again.status).toBe(422);
    expect(again.html).toContain('aria-invalid="true"');
    expect(again.html).toContain(`${label}: `);
    for (const typed of Object.values(fields).filter((text) => text.trim() !== ''))
      expect(again.html).not.toContain(typed);
    expect(scene.fake.calls.length).toBe(calls);
    expect((await scene.read('alice', taskId)).status).toBe('input_required');
    expect((await save({ key: 'canary' })).page.title).toContain('Saved');
  },
);

test('a key that the provider does not accept is said to be wrong, and the right one works', async () => {
  scene.fake.set({ userinfo: null });
  const again = await save({ key: 'wrong-canary' });
  expect(again.status).toBe(422);
  expect(again.html).toContain('API key: ');
  expect(again.html).not.toContain('wrong-canary');
  expect((await scene.read('alice', taskId)).status).toBe('input_required');
  scene.fake.set({ userinfo: { status: 200, body: { id: 'k-1' } } });
  expect((await save({ key: 'right' })).page.title).toContain('Saved');
  expect((await scene.until('alice', taskId, 'completed')).status).toBe('completed');
});

test('while the provider is in trouble the person is asked to try again, and the key is not called wrong', async () => {
  scene.fake.set({ userinfo: { status: 503, body: {} } });
  const page = await save({ key: 'canary' });
  expect(page.status).toBe(502);
  expect(page.page.forms.flatMap(({ buttons }) => buttons).map(({ value }) => value)).toContain('retry');
  expect((await scene.read('alice', taskId)).status).toBe('input_required');
});
