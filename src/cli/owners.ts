/** `keyturn owners block | readmit | erase`: off-boarding of a person (R15). */
import { parseArgs } from 'node:util';
import { loadConfig } from './load.ts';
import { operate, say } from './operate.ts';

const USAGE = `keyturn owners block | readmit | erase --owner <issuer#subject>
  block     ends their tasks; no new one starts and no token is renewed
  readmit   takes that back
  erase     ends and forgets everything of theirs but the audit log
`;

export async function owners(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' }, owner: { type: 'string' } },
  });
  const [what] = positionals;
  const { owner } = values;
  if (owner === undefined || !['block', 'readmit', 'erase'].includes(what ?? '')) {
    process.stderr.write(USAGE);
    return 2;
  }
  return operate(await loadConfig(values.config), async ({ engine: { offBoarding } }) => {
    if (what === 'block') say(`blocked; ${await offBoarding.block(owner)} tasks ended`);
    if (what === 'erase') say(`erased; ${await offBoarding.erase(owner)} rows went`);
    if (what === 'readmit') {
      await offBoarding.readmit(owner);
      say('readmitted');
    }
    return 0;
  });
}
