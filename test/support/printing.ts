/** Every way in which a value might print itself, as one text, for searching it for secrets. */
import { inspect } from 'node:util';
import { describeError } from '../../src/log.ts';

export function printed(value: unknown): string {
  const texts = [
    inspect(value, { depth: 20, showHidden: true, getters: true }),
    inspect(value, { depth: 20, showHidden: true, customInspect: false }),
    JSON.stringify(value) ?? '',
    typeof value === 'object' && value !== null && !('toString' in value) ? '' : String(value),
    JSON.stringify(describeError(value)),
  ];
  for (let error = value; error instanceof Error; error = error.cause) {
    texts.push(error.message, error.stack ?? '', JSON.stringify(error), inspect(error, { depth: 20 }));
  }
  return texts.join('\n');
}
