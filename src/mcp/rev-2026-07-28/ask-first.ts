/**
 * Questions that are asked before a tool runs or a task exists: the work is begun with the answers there are; where it
 * throws `askFirst(…)`, answers that came with this request are held against the forms, and what is still missing is
 * asked. Nothing is kept on the server between the requests.
 */
import type { ElicitationModes } from '../../elicitation/capability.ts';
import { formProblems, readForm, type FormContent, type FormSchema } from '../../elicitation/form.ts';
import { AskFirst } from '../../engine/define.ts';
import type { Json } from '../../store/records.ts';
import type { JsonObject, WireError } from '../json-rpc.ts';
import { withProblems } from './detailed-task.ts';
import { missingCapability } from './envelope.ts';

/** What came of it. */
export type Asked<T> =
  | { readonly kind: 'done'; readonly value: T }
  | {
      readonly kind: 'ask';
      readonly inputRequests: JsonObject;
      readonly answers: ReadonlyMap<string, FormContent>;
      readonly state: Json;
    }
  /** The person, or the client for them, said no. */
  | { readonly kind: 'declined'; readonly name: string; readonly action: 'decline' | 'cancel' }
  | { readonly kind: 'refused'; readonly error: WireError };

/** Most times that one request begins the work again because further answers fit. */
const MOST_ROUNDS = 16;

/** Runs `work` with answers, until it is done or something has to be asked. */
export async function askFirst<T>(options: {
  readonly modes: ElicitationModes;
  readonly answers: ReadonlyMap<string, FormContent>;
  readonly state: Json;
  readonly responses: ReadonlyMap<string, { action: unknown; content: unknown }>;
  work(answers: ReadonlyMap<string, FormContent>, state: Json): Promise<T>;
}): Promise<Asked<T>> {
  const { responses, modes } = options;
  const answers = new Map(options.answers);
  const used = new Set<string>();
  let { state } = options;
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const asked = await attempt(() => options.work(answers, state));
    if (!(asked instanceof AskFirst)) return { kind: 'done', value: asked.value };
    state = asked.state;
    if (!modes.form) return { kind: 'refused', error: missingCapability({ elicitation: { form: {} } }) };
    const inputRequests: Record<string, unknown> = {};
    for (const [name, question] of Object.entries(asked.questions)) {
      checkForm(name, question.schema);
      const response = responses.get(name);
      if (response?.action === 'decline' || response?.action === 'cancel') {
        return { kind: 'declined', name, action: response.action };
      }
      const verdict = response?.action === 'accept' ? readForm(question.schema, response.content) : undefined;
      if (verdict?.ok === true && !used.has(name)) {
        // A response counts once, so that a tool which asks the same again is heard.
        used.add(name);
        answers.set(name, verdict.content);
      } else inputRequests[name] = elicit(question, verdict?.ok === false ? verdict.problems : []);
    }
    if (Object.keys(inputRequests).length > 0) return { kind: 'ask', inputRequests, answers, state };
  }
  throw new Error('a tool asks without end although its questions are answered');
}

async function attempt<T>(work: () => Promise<T>): Promise<AskFirst | { readonly value: T }> {
  try {
    return { value: await work() };
  } catch (error) {
    if (error instanceof AskFirst) return error;
    throw error;
  }
}

function checkForm(name: string, schema: FormSchema): void {
  const problems = formProblems(schema);
  if (problems.length > 0) throw new TypeError(`askFirst("${name}"): ${problems.join('; ')}`);
}

function elicit(
  { schema, message }: { schema: FormSchema; message: string },
  problems: readonly string[],
): JsonObject {
  return {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: withProblems(message, problems),
      requestedSchema: schema,
    },
  };
}
