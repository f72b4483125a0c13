/** Whether a call may stop for a person, as its client put it in `_meta`. */
import { Refusal } from '../errors.ts';
import type { Interaction } from '../store/records.ts';

/** `_meta` key: `never` for a call that nobody watches; it ends at once when it needs a person (code 4017). */
const INTERACTION_META = 'keyturn/interaction';

/**
 * @returns undefined when the call says nothing: then the job decides.
 * @throws Refusal `arguments_invalid`.
 */
export function readInteraction(meta: Readonly<Record<string, unknown>>): Interaction | undefined {
  const given = meta[INTERACTION_META];
  if (given === undefined || given === 'interactive' || given === 'never') return given;
  throw new Refusal('arguments_invalid', {
    message: `_meta["${INTERACTION_META}"]: must be "interactive" or "never"`,
  });
}
