/**
 * Hints between nodes over LISTEN/NOTIFY: one connection of its own that listens, comes back by itself, and says
 * `resync` when it does, since hints may have passed meanwhile. Nothing depends on a hint: it only saves waiting.
 */
import { Client, type ClientConfig } from 'pg';
import type { Hint } from './sql.ts';

/** Payloads stay below PostgreSQL's limit of 8000 bytes. */
const MOST_BYTES = 7_800;
/** Pause before the first reconnection; doubles up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A connection that died without a word is found by this question. */
const PROBE_EVERY_MS = 30_000;

/** Payloads for a transaction's hints, doubles removed, tagged with the node that sent them. */
export function payloads(node: string, hints: readonly Hint[]): string[] {
  const distinct = new Set(hints.map((hint) => JSON.stringify(hint)));
  const texts: string[] = [];
  let batch: string[] = [];
  let bytes = 0;
  const flush = () => {
    if (batch.length > 0) texts.push(`{"node":${JSON.stringify(node)},"hints":[${batch.join(',')}]}`);
    batch = [];
    bytes = 0;
  };
  for (const text of distinct) {
    const size = Buffer.byteLength(text) + 1;
    // An id that alone is too long for a hint is not worth one: everybody looks at everything instead.
    const fitting = size > MOST_BYTES - 200 ? '{"kind":"resync"}' : text;
    if (bytes + Buffer.byteLength(fitting) > MOST_BYTES - 200) flush();
    batch.push(fitting);
    bytes += Buffer.byteLength(fitting) + 1;
  }
  flush();
  return texts;
}

/** Hints of a payload that another node sent; anything unreadable counts as "look at everything". */
export function received(node: string, payload: string | undefined): Hint[] {
  try {
    const told = JSON.parse(payload ?? '') as { node: string; hints: Hint[] };
    return told.node === node ? [] : told.hints.filter((hint) => typeof hint.kind === 'string');
  } catch {
    return [{ kind: 'resync' }];
  }
}

/**
 * Listens until closed.
 *
 * @returns once the first LISTEN stands.
 */
export async function listen(options: {
  client: ClientConfig;
  channel: string;
  node: string;
  tell: (hint: Hint) => void;
}): Promise<{ close: () => Promise<void> }> {
  let closed = false;
  let current: Client | undefined;
  let retry: NodeJS.Timeout | undefined;
  let pauseMs = FIRST_PAUSE_MS;

  async function connect(): Promise<void> {
    const client = new Client({ ...options.client, keepAlive: true });
    let standing = false;
    const lost = () => {
      // Before it stands, its failure is thrown below: one loss is one reconnection.
      if (!standing) return;
      standing = false;
      clearInterval(probe);
      client.end().catch(() => undefined);
      if (current === client) current = undefined;
      if (!closed) again();
    };
    // Without listeners a dropped connection would end the process.
    client.on('error', lost);
    client.on('end', lost);
    client.on('notification', (message) => {
      for (const hint of received(options.node, message.payload)) options.tell(hint);
    });
    const probe = setInterval(() => void client.query('SELECT 1').catch(lost), PROBE_EVERY_MS);
    probe.unref();
    try {
      await client.connect();
      await client.query(`LISTEN ${client.escapeIdentifier(options.channel)}`);
    } catch (error) {
      clearInterval(probe);
      client.end().catch(() => undefined);
      throw error;
    }
    standing = true;
    if (closed) return lost();
    current = client;
    pauseMs = FIRST_PAUSE_MS;
  }

  function again(): void {
    retry = setTimeout(
      () => {
        connect().then(
          () => options.tell({ kind: 'resync' }),
          () => {
            pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
            if (!closed) again();
          },
        );
      },
      pauseMs * (0.5 + Math.random()),
    );
    retry.unref();
  }

  await connect();
  return {
    async close() {
      closed = true;
      clearTimeout(retry);
      await current?.end().catch(() => undefined);
    },
  };
}
