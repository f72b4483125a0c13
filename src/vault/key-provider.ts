/**
 * Where the keyring comes from. A key management service fits behind the same interface: it unwraps the root keys
 * once at the start and hands them to `openKeyring`.
 */
import { readFile } from 'node:fs/promises';
import { Refusal } from '../errors.ts';
import { parseKeyText } from './key-text.ts';
import { openKeyring, type Keyring } from './keyring.ts';

/** Loads the keyring, once at the start. */
export interface KeyProvider {
  /** @throws {Refusal} `configuration_invalid`, naming the source and the entry but never a key. */
  load(): Promise<Keyring>;
}

/**
 * Keys from an environment variable.
 *
 * @param env usually `process.env`.
 */
export function keysFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  name = 'KEYTURN_VAULT_KEYS',
): KeyProvider {
  return {
    async load() {
      const text = env[name];
      if (text === undefined || text.trim() === '') throw notSet(name, `${name} is not set.`);
      return openKeyring(parseKeyText(text, name));
    },
  };
}

/** Keys from a file, such as a mounted secret. */
export function keysFromFile(path: string): KeyProvider {
  return {
    async load() {
      let text: string;
      try {
        text = await readFile(path, 'utf8');
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
        throw notSet(path, `The file of vault keys ${path} cannot be read (${code}).`);
      }
      return openKeyring(parseKeyText(text, path));
    },
  };
}

function notSet(setting: string, message: string): Refusal {
  return new Refusal('configuration_invalid', { message, facts: { setting } });
}
