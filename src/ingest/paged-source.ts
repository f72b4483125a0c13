/**
 * A built-in job: reads a paged HTTP source of a provider from its beginning, or from the checkpoint, and keeps the
 * records in a collection. A page and its checkpoint are one write, and a record is known by its id, so that a page
 * that is read again changes nothing. Nothing is ever deleted because a run did not see it.
 */
import { z } from 'zod';
import { Refusal } from '../errors.ts';
import { defineJob, text, type JobDefinition } from '../engine/define.ts';
import type { Json } from '../store/records.ts';

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
  /** Records of a page. Default: member `items`. */
  readonly recordsOf?: (page: Json) => readonly { id: string; body: Json }[];
  /** URL of the page after, or undefined at the end. Default: as the provider's profile says (`api.pagination`). */
  readonly nextOf?: (page: Json, url: string) => string | undefined;
  /** Count of all records, if pages tell it. Default: member `total`. */
  readonly totalOf?: (page: Json) => number | undefined;
}

const checkpointSchema = z.strictObject({ next: z.string(), pages: z.int(), records: z.int() });

type Checkpoint = z.output<typeof checkpointSchema>;

function member(page: Json, name: string): Json | undefined {
  return typeof page === 'object' && page !== null && !Array.isArray(page) ? page[name] : undefined;
}

function recordsOf(page: Json): { id: string; body: Json }[] {
  const items = member(page, 'items');
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

function totalOf(page: Json): number | undefined {
  const total = member(page, 'total');
  return typeof total === 'number' ? total : undefined;
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
    async run(job) {
      const api = job.api(source.provider);
      let at: Checkpoint = checkpointSchema.safeParse(job.checkpoint).data ?? {
        next: source.url,
        pages: 0,
        records: 0,
      };
      for (let next: string | undefined = at.next; next !== undefined && next !== ''; next = at.next) {
        const answer = await api.get(next);
        // A cursor that died while the task waited: start over. Records are known by their ids, so none is doubled.
        if ((answer.status === 400 || answer.status === 410) && next !== source.url) {
          await answer.body?.cancel();
          at = { next: source.url, pages: 0, records: 0 };
          await job.save({ ...at });
          continue;
        }
        if (!answer.ok) {
          throw new Refusal('resource_refused', {
            facts: { provider: source.provider, status: answer.status },
          });
        }
        const page = (await answer.json()) as Json;
        const rows = read.records(page);
        const after = source.nextOf === undefined ? api.nextPage(answer, page) : source.nextOf(page, next);
        at = { next: after ?? '', pages: at.pages + 1, records: at.records + rows.length };
        const total = read.total(page);
        job.progress({
          done: at.records,
          ...(total === undefined ? {} : { total }),
          message: `${at.pages} pages`,
        });
        await job.save({ ...at }, { collection: source.collection, rows });
        if (at.next === '') break;
      }
      return text(`${at.records} records in ${at.pages} pages are in "${source.collection}".`, {
        structuredContent: { records: at.records, pages: at.pages, collection: source.collection },
      });
    },
  });
}
