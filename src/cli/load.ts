/** Loads the configuration file: `keyturn.config.ts`, `.js` or `.json`. */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readConfig, type Config } from '../config.ts';
import { Refusal } from '../errors.ts';

const NAMES = ['keyturn.config.ts', 'keyturn.config.js', 'keyturn.config.json'];

/** @throws Refusal `configuration_invalid`. */
export async function loadConfig(path: string | undefined): Promise<Config> {
  const file = path ?? NAMES.find((name) => existsSync(name));
  if (file === undefined || !existsSync(file)) {
    throw new Refusal('configuration_invalid', {
      message: `no configuration: ${path ?? NAMES.join(', ')} is not here; see "Use it" in the README`,
    });
  }
  if (file.endsWith('.json')) {
    try {
      return readConfig(JSON.parse(readFileSync(file, 'utf8')));
    } catch (error) {
      if (error instanceof SyntaxError) {
        throw new Refusal('configuration_invalid', { message: `${file}: is not JSON: ${error.message}` });
      }
      throw error;
    }
  }
  const module = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown };
  if (module.default === undefined) {
    throw new Refusal('configuration_invalid', { message: `${file}: has no default export` });
  }
  return readConfig(module.default);
}
