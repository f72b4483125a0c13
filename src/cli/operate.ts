/** What operators' commands share: they work on the ledger and vault of a server, which may be running meanwhile. */
import { existsSync } from 'node:fs';
import { openKeyturn, type Keyturn } from '../app.ts';
import type { Config } from '../config.ts';
import { Refusal } from '../errors.ts';

/** Whether the server has ever been started here: a command makes no ledger of its own. */
export function hasLedger(config: Config): boolean {
  return !('file' in config.ledger) || existsSync(config.ledger.file);
}

/**
 * Opens ledger and vault for a command; nothing listens and no work is started.
 *
 * @throws Refusal as `openKeyturn`; `configuration_invalid` where there is no ledger yet.
 */
export async function operate(
  config: Config,
  command: (keyturn: Keyturn) => Promise<number>,
): Promise<number> {
  if (!hasLedger(config)) {
    const file = 'file' in config.ledger ? config.ledger.file : '';
    throw new Refusal('configuration_invalid', {
      message: `ledger.file: there is no ${file} yet; the first start of the server makes it`,
    });
  }
  const keyturn = await openKeyturn(config);
  try {
    return await command(keyturn);
  } finally {
    await keyturn.stop();
  }
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
