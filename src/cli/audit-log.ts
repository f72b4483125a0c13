/** `keyturn audit-log export | verify`. */
import { parseArgs } from 'node:util';
import { brokenLink, CHAIN_START } from '../store/audit.ts';
import { loadConfig } from './load.ts';
import { operate, say } from './operate.ts';

const PAGE = 1_000;

export async function auditLog(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' } },
  });
  const [what] = positionals;
  if (what !== 'export' && what !== 'verify') {
    process.stderr.write('keyturn audit-log export | verify\n');
    return 2;
  }
  return operate(await loadConfig(values.config), async (keyturn) => {
    while ((await keyturn.ledger.chainAudit(PAGE)) === PAGE);
    let head = CHAIN_START;
    let link = 0;
    for (;;) {
      const rows = await keyturn.ledger.readAudit(link, PAGE);
      const broken = brokenLink(rows, head);
      if (broken !== undefined) {
        process.stderr.write(`the chain is broken at link ${broken}\n`);
        return 1;
      }
      if (what === 'export') rows.forEach((row) => say(JSON.stringify(row)));
      const last = rows.at(-1);
      if (last === undefined) break;
      link = last.link ?? link;
      head = last.hash ?? head;
    }
    if (what === 'verify') say(`${link} links hold; head ${head}`);
    return 0;
  });
}
