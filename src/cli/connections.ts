/** `keyturn connections list | revoke`, by owner and provider (R15). */
import { parseArgs } from 'node:util';
import { openKeyturn } from '../app.ts';
import { loadConfig } from './load.ts';

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
  const keyturn = await openKeyturn(await loadConfig(values.config));
  try {
    if (what === 'revoke') {
      const many = await keyturn.engine.offBoarding.endAll(filter, 'operator');
      process.stdout.write(`${many} connections ended\n`);
      return 0;
    }
    for (let after = ''; ;) {
      const page = await keyturn.ledger.findConnections({ ...filter, after, limit: 500 });
      for (const { id, owner, provider, account, status, generation, lastUsedAtMs } of page) {
        const used = lastUsedAtMs === null ? 'never used' : new Date(lastUsedAtMs).toISOString();
        process.stdout.write(
          `${[id, provider, account, status, `generation ${generation}`, used, owner].join('\t')}\n`,
        );
      }
      const last = page.at(-1);
      if (last === undefined) return 0;
      after = last.id;
    }
  } finally {
    await keyturn.stop();
  }
}
