import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownerOf } from '../../src/elicitation/owner.ts';
import type { JobDefinition } from '../../src/engine/define.ts';
import type { TaskSnapshot } from '../../src/engine/tasks.ts';
import { defineGithubIssuesIngest } from '../../src/ingest/github-issues.ts';
import { definePagedIngest } from '../../src/ingest/paged-source.ts';
import { nextPage } from '../../src/provider/pagination.ts';
import { issueIds } from '../../src/sandbox/github-issues.ts';
import { recordIds } from '../../src/sandbox/records.ts';
import { openPerson } from '../../src/sandbox/person.ts';
import { openWorld, type World } from '../../src/world.ts';

let world: World;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keyturn-ingest-'));
});

afterEach(async () => {
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

const wanted = issueIds().map(String).toSorted();
const declared = { tasks: true, modes: { form: true, url: true }, clientName: 'test' };

async function open(make: (api: string) => JobDefinition[] = () => []): Promise<World> {
  world = await openWorld({
    config: { log: { level: 'silent' }, timing: { sweepEveryMs: 100 } },
    moreTools: (recordsUrl) => make(recordsUrl.replace('/records', '')),
  });
  return world;
}

function caller() {
  return {
    owner: ownerOf({ issuer: world.sandbox.issuer.issuer, subject: 'alice' }),
    clientId: 'test',
    scopes: [],
  };
}

/** Runs a job to its end; signs in whenever it asks. @returns the task and how often it asked. */
async function run(job: JobDefinition): Promise<{ task: TaskSnapshot; asked: number }> {
  const { task: started } = await world.keyturn.engine.tasks.start(caller(), { job, args: {}, declared });
  let asked = 0;
  for (let rev = -1; ;) {
    const task = await world.keyturn.engine.tasks.waitForChange(caller(), started.taskId, {
      beyondRev: rev,
      timeoutMs: 15_000,
      signal: AbortSignal.timeout(15_000),
    });
    if (task === undefined || task.rev === rev) throw new Error(`it stayed ${task?.status}`);
    rev = task.rev;
    const link = task.inputs[0]?.url;
    if (task.status === 'input_required' && link != null) {
      asked += 1;
      await openPerson().signInEverywhere(link, { as: 'alice' });
      rev = -1;
    }
    if (!['working', 'input_required'].includes(task.status)) return { task, asked };
  }
}

async function keptIds(collection: string): Promise<string[]> {
  const rows = await world.keyturn.ledger.readRecords(collection, caller().owner, {
    afterId: '',
    limit: 2_000,
  });
  return rows.map((row) => row.id).toSorted();
}

const github = (
  api: string,
  more: Partial<Parameters<typeof defineGithubIssuesIngest>[0]> = {},
): JobDefinition =>
  defineGithubIssuesIngest({
    provider: 'paperboat',
    repository: 'paperboat/harbour',
    apiUrl: api,
    scopes: ['records:read'],
    collection: 'issues',
    ...more,
  });

const importing = (url: string, more: Partial<Parameters<typeof definePagedIngest>[0]> = {}): JobDefinition =>
  definePagedIngest({
    name: 'import_boats',
    description: 'Boats.',
    provider: 'paperboat',
    scopes: ['records:read'],
    url,
    collection: 'boats',
    recordsOf: (page) =>
      (page as { records: { id: string }[] }).records.map((body) => ({ id: body.id, body })),
    nextOf: (page, at) => {
      const { next } = page as { next: string | null };
      if (next === null) return undefined;
      const after = new URL(at);
      after.searchParams.set('cursor', next);
      return after.href;
    },
    ...more,
  });

test('a thousand issues arrive once each over Link headers, with a token that expires and a grant that is revoked', async () => {
  const { sandbox } = await open();
  sandbox.saas.afterPages(3, () => void sandbox.saas.expireAccessTokens());
  sandbox.saas.afterPages(6, () => {
    sandbox.saas.expireAccessTokens();
    sandbox.saas.revokeGrants('alice@paperboat');
  });
  const { task, asked } = await run(github(`${sandbox.saas.origin}/api`));
  expect(task.outcome).toMatchObject({
    result: { structuredContent: { records: 1_000, pages: 10, collection: 'issues' } },
  });
  expect(asked).toBe(2);
  expect(await keptIds('issues')).toEqual(wanted);
});

test('a grant that loses its permissions stops the task for one sign-in, and it goes on', async () => {
  const { sandbox } = await open();
  sandbox.saas.afterPages(4, () => void sandbox.saas.narrowGrants('alice@paperboat'));
  const { task, asked } = await run(github(`${sandbox.saas.origin}/api`));
  expect(task.status).toBe('completed');
  expect(asked).toBe(2);
  expect(await keptIds('issues')).toEqual(wanted);
});

test('NDJSON files hold each issue once after a stop in the middle and a restart of the server', async () => {
  let job: JobDefinition | undefined;
  const { sandbox } = await open((api) => {
    job = github(api, { name: 'issues_to_files', sink: { kind: 'ndjson', folder } });
    return [job];
  });
  if (job === undefined) throw new Error('no job');
  sandbox.saas.afterPages(5, () => {
    sandbox.saas.expireAccessTokens();
    sandbox.saas.revokeGrants('alice@paperboat');
  });
  sandbox.saas.afterPages(7, () => void world.restart());
  const { task } = await run(job).catch(async () => run(job as JobDefinition));
  const { structuredContent } = (
    task.outcome as unknown as { result: { structuredContent: { file: string } } }
  ).result;
  const lines = readFileSync(structuredContent.file, 'utf8').trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { id: string }).id).toSorted()).toEqual(wanted);
  // The owner's address is in no path, and the parts are gone with the end.
  expect(structuredContent.file).not.toContain('alice');
  expect(readdirSync(dirname(structuredContent.file)).filter((name) => name.includes(task.taskId))).toEqual(
    [],
  );
});

test("GitHub's recorded pages are read to their end by their own Link headers", async () => {
  let job: JobDefinition | undefined;
  await open((api) => {
    job = definePagedIngest({
      name: 'recorded_issues',
      description: 'Recorded issues.',
      provider: 'paperboat',
      scopes: ['records:read'],
      url: `${api}/repos/octokit-fixture-org/paginate-issues/issues?per_page=3`,
      collection: 'recorded',
      pagination: { kind: 'link-header' },
    });
    return [job];
  });
  if (job === undefined) throw new Error('no job');
  const { task } = await run(job);
  expect(task.outcome).toMatchObject({ result: { structuredContent: { records: 13, pages: 5 } } });
  expect(await keptIds('recorded')).toHaveLength(13);
});

test.each([{ kind: 'table' } as const, { kind: 'ndjson' } as const])(
  'a cursor that died while a person was away starts the reading over, and no record is lost or doubled ($kind)',
  async ({ kind }) => {
    let job: JobDefinition | undefined;
    const { sandbox } = await open((api) => {
      const sink = kind === 'table' ? { kind } : { kind, folder };
      job = importing(`${api}/records`, { sink });
      return [job];
    });
    if (job === undefined) throw new Error('no job');
    sandbox.saas.afterPages(4, () => {
      sandbox.saas.expireAccessTokens();
      sandbox.saas.revokeGrants('alice@paperboat');
      sandbox.saas.expireCursors();
    });
    const { task, asked } = await run(job);
    expect(asked).toBe(2);
    expect(task.outcome).toMatchObject({ result: { structuredContent: { records: 1_000, pages: 10 } } });
    const { file } = (task.outcome as unknown as { result: { structuredContent: { file?: string } } }).result
      .structuredContent;
    const ids =
      file === undefined
        ? await keptIds('boats')
        : readFileSync(file, 'utf8')
            .trim()
            .split('\n')
            .map((line) => (JSON.parse(line) as { id: string }).id)
            .toSorted();
    expect(ids).toEqual(recordIds());
  },
);

test('a source whose cursors die each time ends as refused, and is not read in circles', async () => {
  let job: JobDefinition | undefined;
  const { sandbox } = await open((api) => {
    job = importing(`${api}/records`);
    return [job];
  });
  if (job === undefined) throw new Error('no job');
  for (let n = 1; n < 20; n += 1) sandbox.saas.afterPages(n, () => sandbox.saas.expireCursors());
  const { task } = await run(job);
  expect(task.outcome).toMatchObject({ reason: 'resource_refused', facts: { status: 400 } });
  // The first reading and three more, two requests each.
  expect(sandbox.saas.apiCalls.filter(({ path }) => path.startsWith('/api/records'))).toHaveLength(8);
});

test('pages and offsets are counted up until a page comes short', async () => {
  await open();
  const at = (url: string, many: number, step: number, parameter: string, first: number) =>
    nextPage(
      { kind: 'number', parameter, first, step, size: 2, items: 'list' },
      { url, headers: new Headers(), body: { list: Array.from({ length: many }, () => ({})) } },
    );
  expect(at('https://a.example/x', 2, 1, 'page', 1)).toBe('https://a.example/x?page=2');
  expect(at('https://a.example/x?page=2', 2, 1, 'page', 1)).toBe('https://a.example/x?page=3');
  expect(at('https://a.example/x?offset=2', 2, 2, 'offset', 0)).toBe('https://a.example/x?offset=4');
  expect(at('https://a.example/x?page=3', 1, 1, 'page', 1)).toBeUndefined();
});
