/** `keyturn connections list | revoke`, by owner and provider (R15). */
import { parseArgs } from 'node:util';
import type { Keyturn } from '../app.ts';
import { loadConfig } from './load.ts';
import { operate, say } from './operate.ts';

export async function connections(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' }, owner: { type: 'string' }, provider: { type: 'string' } },
  });
  const [what] = positionals;
  const filter = {
    ...(values.owner === undefined ? {} : { owner: values.owner }),
    ...(values.provider === undefined ? {} : { provider: values.provider }),
  };
  if (what !== 'list' && what !== 'revoke') {
    process.stderr.write(
      'keyturn connections list | revoke [--owner <issuer#subject>] [--provider <name>]\n',
    );
    return 2;
  }
  if (what === 'revoke' && Object.keys(filter).length === 0) {
    process.stderr.write('keyturn connections revoke: name an --owner or a --provider\n');
    return 2;
  }
  return operate(await loadConfig(values.config), async (keyturn) => {
    if (what === 'list') return list(keyturn, filter);
    const many = await keyturn.engine.offBoarding.endAll(filter, 'operator');
    say(`${many} connections ended`);
    return 0;
  });
}

async function list(keyturn: Keyturn, filter: { owner?: string; provider?: string }): Promise<number> {
  for (let after = ''; ;) {
    const page = await keyturn.ledger.findConnections({ ...filter, after, limit: 500 });
    for (const { id, owner, provider, account, status, generation, lastUsedAtMs } of page) {
      const used = lastUsedAtMs === null ? 'never used' : new Date(lastUsedAtMs).toISOString();
      say([id, provider, account, status, `generation ${generation}`, used, owner].join('\t'));
    }
    const last = page.at(-1);
    if (last === undefined) {
      if (after === '') say('no connections');
      return 0;
    }
    after = last.id;
  }
}
