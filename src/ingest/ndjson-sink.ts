/**
 * Records as NDJSON files. A run appends to a segment of its own; the checkpoint names segments with the number of bytes
 * that count, so that what a run wrote and no checkpoint named was never written (R25). A run that has lost its term may
 * still write to its segment: nobody will name it. At the end the counted bytes become one file, each id once.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Json } from '../store/records.ts';

/** A part of a collection: a file, and how much of it counts. */
export const segmentSchema = z.strictObject({ name: z.string().regex(/^[\w.-]+$/), bytes: z.int() });

type Segment = z.output<typeof segmentSchema>;

/** A folder from the configuration, a collection, an owner: never anything from arguments. */
export function openNdjsonSink(place: { folder: string; collection: string; owner: string; taskId: string }) {
  // Owners are addresses of people: their hash names the folder.
  const owner = createHash('sha256').update(place.owner).digest('hex').slice(0, 32);
  const folder = join(place.folder, owner);
  const mine = `${place.taskId}.${randomBytes(6).toString('hex')}.part`;
  const pathOf = (name: string): string => join(folder, name);

  return {
    /** Appends rows, on disk when it resolves. @returns the segments that the next checkpoint has to name. */
    async append(
      rows: readonly { id: string; body: Json }[],
      before: readonly Segment[],
    ): Promise<Segment[]> {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const file = await open(pathOf(mine), 'a', 0o600);
      try {
        await file.appendFile(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
        await file.datasync();
        const { size } = await file.stat();
        return [...before.filter((segment) => segment.name !== mine), { name: mine, bytes: size }];
      } finally {
        await file.close();
      }
    },

    /** Makes one file of the segments, the last word on each id. @returns its path. */
    async publish(segments: readonly Segment[]): Promise<string> {
      const byId = new Map<string, string>();
      for (const { name, bytes } of segments) {
        const counted = (await readFile(pathOf(name))).subarray(0, bytes).toString('utf8');
        for (const line of counted.split('\n')) {
          if (line !== '') byId.set((JSON.parse(line) as { id: string }).id, line);
        }
      }
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const path = pathOf(`${place.collection}.ndjson`);
      const file = await open(`${path}.new`, 'w', 0o600);
      try {
        await file.writeFile([...byId.values()].map((line) => `${line}\n`).join(''));
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
      await Promise.all(segments.map(({ name }) => rm(pathOf(name), { force: true })));
      return path;
    },
  };
}
