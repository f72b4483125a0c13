/** `keyturn keys generate | list | rewrap | retire`: the vault keys and what still needs each (R21). */
import { parseArgs } from 'node:util';
import type { Keyturn } from '../app.ts';
import { generateKey } from '../vault/keyring.ts';
import { loadConfig } from './load.ts';
import { operate, say } from './operate.ts';

const USAGE = `keyturn keys generate       prints a new vault key; put it first, keep the old ones behind it
keyturn keys list           every key, and how much still needs it
keyturn keys rewrap         seals everything again under the current key, while the server runs
keyturn keys retire <kid>   says whether a key may be taken out of the configuration
`;

export async function keys(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' } },
  });
  const [what, kid] = positionals;
  if (what === 'generate') {
    // The one place where a key is printed: the operator asked for it.
    say(generateKey().entry.reveal());
    return 0;
  }
  const isComplete = what === 'list' || what === 'rewrap' || (what === 'retire' && kid !== undefined);
  if (!isComplete) {
    process.stderr.write(USAGE);
    return 2;
  }
  return operate(await loadConfig(values.config), (keyturn) => {
    if (what === 'list') return list(keyturn);
    return what === 'rewrap' ? rewrap(keyturn) : retire(keyturn, kid ?? '');
  });
}

async function list(keyturn: Keyturn): Promise<number> {
  const uses = new Map((await keyturn.ledger.kidUses()).map((use) => [use.kid, use]));
  keyturn.kids.forEach((kid, index) => {
    const { records = 0, links = 0 } = uses.get(kid) ?? {};
    const role = index === 0 ? 'current' : 'previous';
    say([kid, role, `${records} sealed grants`, `${links} open links`].join('\t'));
  });
  return 0;
}

async function rewrap(keyturn: Keyturn): Promise<number> {
  const { moved, unreadable } = await keyturn.engine.rewrap();
  say(`${moved} sealed grants moved to the key "${keyturn.kids[0]}"`);
  for (const id of unreadable) say(`${id}\tcannot be opened: it signs in again when it is used`);
  return unreadable.length > 0 ? 1 : 0;
}

async function retire(keyturn: Keyturn, kid: string): Promise<number> {
  const stays = (why: string): number => {
    say(`The key "${kid}" has to stay: ${why}.`);
    return 1;
  };
  if (!keyturn.kids.includes(kid)) {
    say(`The key "${kid}" is not configured.`);
    return 1;
  }
  if (keyturn.kids[0] === kid) return stays('it is the current one');
  const use = (await keyturn.ledger.kidUses()).find((one) => one.kid === kid);
  if (use !== undefined && use.records > 0) {
    return stays(`${use.records} sealed grants need it; run keyturn keys rewrap`);
  }
  if (use !== undefined && use.links > 0) {
    const until = new Date(use.linksUntilMs ?? 0).toISOString();
    return stays(`${use.links} open links were made with it; the last is over at ${until}`);
  }
  say(
    `Nothing needs the key "${kid}": take it out of the configuration. Its name cannot be given to another key.`,
  );
  return 0;
}
