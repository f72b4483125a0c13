/** The audit log: chained after the fact, by any node, so that any change of it shows; on every engine. */
import { expect, it } from 'vitest';
import { brokenLink, CHAIN_START } from '../../src/store/audit.ts';
import { fresh } from '../support/ledger-records.ts';
import { onEveryEngine, type Rig } from '../support/ledgers.ts';

async function recorded(rig: Rig, many: number): Promise<void> {
  for (let n = 0; n < many; n += 1) {
    await rig.ledger.recordEvent({
      event: fresh('event'),
      owner: 'alice',
      outcome: 'done',
      facts: { n, text: 'naïve' },
    });
  }
}

onEveryEngine(({ rig: open }) => {
  it('a chain that two nodes extend at once has every event once and holds', async () => {
    const rig = await open();
    const other = await rig.node();
    await recorded(rig, 40);
    for (let n = 0; n < 10; n += 1) {
      await Promise.all([rig.ledger.chainAudit(7), other.ledger.chainAudit(7)]);
    }
    const rows = await rig.ledger.readAudit(0, 100);
    expect(rows.map((row) => row.link)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
    expect(new Set(rows.map((row) => row.event)).size).toBe(40);
    expect(brokenLink(rows)).toBeUndefined();
    const [first, ...rest] = rows;
    expect(brokenLink(rest, first?.hash ?? CHAIN_START)).toBeUndefined();
  });

  const edits: [string, (rig: Rig) => Promise<unknown>][] = [
    ...['event', 'owner', 'client_id', 'task_id', 'connection_id', 'outcome'].map(
      (column): [string, (rig: Rig) => Promise<unknown>] => [
        `an edited ${column}`,
        (rig) => rig.run(`UPDATE audit SET ${column} = 'forged' WHERE link = 3`),
      ],
    ),
    ['an edited time', (rig) => rig.run(`UPDATE audit SET at = at + 1 WHERE link = 3`)],
    ['edited facts', (rig) => rig.run(`UPDATE audit SET facts = '{"n":99}' WHERE link = 3`)],
    ['a removed row', (rig) => rig.run(`DELETE FROM audit WHERE link = 3`)],
    ['a removed first row', (rig) => rig.run(`DELETE FROM audit WHERE link = 1`)],
    [
      'two rows changed places',
      async (rig) => {
        await rig.run(`UPDATE audit SET link = 100 WHERE link = 3`);
        await rig.run(`UPDATE audit SET link = 3 WHERE link = 4`);
        await rig.run(`UPDATE audit SET link = 4 WHERE link = 100`);
      },
    ],
    [
      'a row added in between',
      async (rig) => {
        for (let link = 6; link > 3; link -= 1) {
          await rig.run(`UPDATE audit SET link = ? WHERE link = ?`, link + 1, link);
        }
        await rig.run(
          `INSERT INTO audit (at, event, outcome, facts, link, hash) SELECT at, event, outcome, facts, 4, hash FROM audit WHERE link = 3`,
        );
      },
    ],
    ['a hash taken away', (rig) => rig.run(`UPDATE audit SET hash = NULL WHERE link = 3`)],
  ];

  it.each(edits)('%s breaks the chain', async (_, edit) => {
    const rig = await open();
    await recorded(rig, 6);
    await rig.ledger.chainAudit(100);
    expect(brokenLink(await rig.ledger.readAudit(0, 100))).toBeUndefined();
    await edit(rig);
    expect(brokenLink(await rig.ledger.readAudit(0, 100))).toBeDefined();
  });

  it('events keep the order in which they were chained, page by page', async () => {
    const rig = await open();
    await recorded(rig, 5);
    expect(await rig.ledger.chainAudit(2)).toBe(2);
    expect(await rig.ledger.chainAudit(10)).toBe(3);
    expect(await rig.ledger.chainAudit(10)).toBe(0);
    const pages = [
      await rig.ledger.readAudit(0, 2),
      await rig.ledger.readAudit(2, 2),
      await rig.ledger.readAudit(4, 2),
    ];
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(brokenLink(pages.flat())).toBeUndefined();
  });
});
