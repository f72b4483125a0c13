/** `keyturn keys generate`. */
import { generateKey } from '../vault/keyring.ts';

export function keys(args: string[]): Promise<number> {
  if (args[0] !== 'generate') {
    process.stderr.write(
      'keyturn keys generate: prints a new vault key; put it first, keep the old ones behind it\n',
    );
    return Promise.resolve(2);
  }
  // The one place where a key is printed: the operator asked for it.
  process.stdout.write(`${generateKey().entry.reveal()}\n`);
  return Promise.resolve(0);
}
