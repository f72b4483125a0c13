/**
 * A built-in job: reads a paged HTTP source of a provider from its beginning, or from the checkpoint, and keeps the
 * records in a collection. A page and its checkpoint are one write, and a record is known by its id, so that a page
 * that is read again changes nothing. Nothing is ever deleted because a run did not see it.
 */
import { z } from 'zod';
import { Refusal } from '../errors.ts';
import { DEFAULT_ACCOUNT } from '../engine/accounts.ts';
import { defineJob, text, type JobDefinition } from '../engine/define.ts';
import { nextPage } from '../provider/pagination.ts';
import type { Pagination } from '../provider/profile.ts';
import type { Json } from '../store/records.ts';
import { openNdjsonSink, segmentSchema } from './ndjson-sink.ts';

/** Where pages come from and where records go. Places come from here, never from arguments (R25). */
export interface PagedSource {
  /** Name of the tool. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** Name of the provider in the configuration. */
  readonly provider: string;
  readonly scopes: readonly string[];
  /** URL of the first page. */
  readonly url: string;
  /** Collection that the records are kept in. */
  readonly collection: string;
  /** Where the collection is: a table of the ledger's database, or NDJSON files in a folder. Default: the table. */
  readonly sink?: { readonly kind: 'table' } | { readonly kind: 'ndjson'; readonly folder: string };
  /** How the list is paged, where it is not as the provider's profile says. */
  readonly pagination?: Pagination;
  readonly taskSupport?: 'required' | 'optional';
  /**
   * `several`: the person may have more than one account there. Records of an account that has a name carry it before
   * their id, as in `work:42`: two accounts may number alike.
   */
  readonly accounts?: 'one' | 'several';
  /** Records of a page. Default: the page itself, or its member `items`. */
  readonly recordsOf?: (page: Json) => readonly { id: string; body: Json }[];
  /** URL of the page after, or undefined at the end. Default: as `pagination`, or the provider's profile, says. */
  readonly nextOf?: (page: Json, url: string) => string | undefined;
  /** Count of all records, if pages tell it. Default: member `total`. */
  readonly totalOf?: (page: Json) => number | undefined;
}

const checkpointSchema = z.strictObject({
  next: z.string(),
  pages: z.int(),
  records: z.int(),
  segments: z.array(segmentSchema).default([]),
  restarts: z.int().default(0),
});

/** A source whose cursors die each time is not read in circles. */
const MOST_RESTARTS = 3;

/** What the job answers with. */
export interface IngestResult {
  readonly records: number;
  readonly pages: number;
  readonly collection: string;
  /** The file, for the NDJSON sink. */
  readonly file?: string;
}

type Checkpoint = z.output<typeof checkpointSchema>;

function member(page: Json, name: string): Json | undefined {
  return typeof page === 'object' && page !== null && !Array.isArray(page) ? page[name] : undefined;
}

function recordsOf(page: Json): { id: string; body: Json }[] {
  const items = Array.isArray(page) ? page : member(page, 'items');
  if (!Array.isArray(items))
    throw new Refusal('resource_refused', { facts: { problem: 'no list of items' } });
  return items.map((body) => {
    const id = member(body, 'id');
    if (typeof id !== 'string' && typeof id !== 'number') {
      throw new Refusal('resource_refused', { facts: { problem: 'an item without an id' } });
    }
    return { id: String(id), body };
  });
}

/** The account that the call is about, if it has a name. */
function accountOf({ account }: Record<string, unknown>): string | undefined {
  return typeof account === 'string' && account !== DEFAULT_ACCOUNT ? account : undefined;
}

function named(
  rows: readonly { id: string; body: Json }[],
  account: string | undefined,
): readonly { id: string; body: Json }[] {
  return account === undefined ? rows : rows.map(({ id, body }) => ({ id: `${account}:${id}`, body }));
}

function totalOf(page: Json): number | undefined {
  const total = member(page, 'total');
  return typeof total === 'number' ? total : undefined;
}

function nextOf(
  source: PagedSource,
  answer: Response,
  page: Json,
  url: string,
  byProfile: () => string | undefined,
): string | undefined {
  if (source.nextOf !== undefined) return source.nextOf(page, url);
  if (source.pagination === undefined) return byProfile();
  return nextPage(source.pagination, { url, headers: answer.headers, body: page });
}

/** Defines the job. */
export function definePagedIngest(source: PagedSource): JobDefinition {
  const read = {
    records: source.recordsOf ?? recordsOf,
    total: source.totalOf ?? totalOf,
  };
  return defineJob({
    name: source.name,
    ...(source.title === undefined ? {} : { title: source.title }),
    description: source.description,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    requires: { [source.provider]: { scopes: source.scopes } },
    ...(source.accounts === undefined ? {} : { accounts: source.accounts }),
    taskSupport: source.taskSupport ?? 'optional',
    async run(job) {
      const api = job.api(source.provider);
      const start: Checkpoint = { next: source.url, pages: 0, records: 0, segments: [], restarts: 0 };
      let at: Checkpoint = checkpointSchema.safeParse(job.checkpoint).data ?? start;
      const file =
        source.sink?.kind === 'ndjson'
          ? openNdjsonSink({
              ...source.sink,
              collection: source.collection,
              owner: job.owner,
              taskId: job.taskId,
            })
          : undefined;
      for (let next: string | undefined = at.next; next !== undefined && next !== ''; next = at.next) {
        const answer = await api.get(next);
        // A cursor that died while the task waited: start over. Records are known by their ids, so none is doubled.
        const died = (answer.status === 400 || answer.status === 410) && next !== source.url;
        if (died && at.restarts < MOST_RESTARTS) {
          await answer.body?.cancel();
          at = { ...start, segments: at.segments, restarts: at.restarts + 1 };
          await job.save({ ...at });
          continue;
        }
        if (!answer.ok) {
          throw new Refusal('resource_refused', {
            facts: { provider: source.provider, status: answer.status },
          });
        }
        const page = (await answer.json()) as Json;
        const rows = named(read.records(page), accountOf(job.args));
        const after = nextOf(source, answer, page, next, () => api.nextPage(answer, page));
        // On disk before the checkpoint says so: what no checkpoint names was never written.
        const segments = file === undefined ? at.segments : await file.append(rows, at.segments);
        at = { ...at, next: after ?? '', pages: at.pages + 1, records: at.records + rows.length, segments };
        const total = read.total(page);
        job.progress({
          done: at.records,
          ...(total === undefined ? {} : { total }),
          message: `${at.pages} pages`,
        });
        await job.save({ ...at }, file === undefined ? { collection: source.collection, rows } : undefined);
        if (at.next === '') break;
      }
      const result: IngestResult = {
        records: at.records,
        pages: at.pages,
        collection: source.collection,
        ...(file === undefined ? {} : { file: await file.publish(at.segments) }),
      };
      return text(`${at.records} records in ${at.pages} pages are in "${source.collection}".`, {
        structuredContent: { ...result },
      });
    },
  });
}
