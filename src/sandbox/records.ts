/**
 * The thousand records of Paperboat: always the same, so that whoever reads them all can be held to it.
 * Pure.
 */

/** How many there are: ten pages of the usual size. */
export const RECORD_COUNT = 1_000;
/** Records on a page unless fewer are asked for; also the most. */
export const PAGE_SIZE = 100;

export interface PaperboatRecord {
  /** `boat-0001` to `boat-1000`. */
  readonly id: string;
  readonly title: string;
  readonly amountCents: number;
  /** RFC 3339, in UTC. */
  readonly updatedAt: string;
}

export interface RecordPage {
  readonly records: readonly PaperboatRecord[];
  /** Cursor of the page after this one; null on the last. */
  readonly next: string | null;
}

/** All ids, in order. */
export function recordIds(): readonly string[] {
  return Array.from({ length: RECORD_COUNT }, (_, index) => recordAt(index).id);
}

/**
 * One page.
 *
 * @param cursor `next` of the page before; null for the first page
 * @param age how many times all cursors have died
 * @returns undefined for a cursor that was never handed out, or has died.
 */
export function recordPage(cursor: string | null, limit: number, age: number): RecordPage | undefined {
  const from = cursor === null ? 0 : positionOf(cursor, age);
  if (from === undefined) return undefined;
  const until = Math.min(from + limit, RECORD_COUNT);
  const records = Array.from({ length: until - from }, (_, index) => recordAt(from + index));
  return { records, next: until < RECORD_COUNT ? cursorAt(until, age) : null };
}

function recordAt(index: number): PaperboatRecord {
  const number = index + 1;
  return {
    id: `boat-${String(number).padStart(4, '0')}`,
    title: `Paper boat no. ${number}`,
    amountCents: (number * 37) % 10_000,
    updatedAt: new Date(Date.UTC(2026, 0, 1) + index * 60_000).toISOString(),
  };
}

function cursorAt(position: number, age: number): string {
  return Buffer.from(`after:${position}.${age}`).toString('base64url');
}

function positionOf(cursor: string, age: number): number | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('utf8');
  const position = Number(/^after:(\d{1,4})\.\d+$/.exec(text)?.[1]);
  return position > 0 && position < RECORD_COUNT && cursorAt(position, age) === cursor ? position : undefined;
}
