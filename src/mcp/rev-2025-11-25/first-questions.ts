/**
 * Questions that a tool asks before it runs or before there is a task: forms on the stream of the call, asked and
 * answered in one session. They live as long as the call; the answer has to reach the process that holds it.
 */
import { AskFirst, type ToolCall } from '../../engine/define.ts';
import { readForm, type FormContent } from '../../elicitation/form.ts';
import { TASK_ERROR_CODES } from '../../errors.ts';
import type { Json } from '../../store/records.ts';
import { newFirstId } from './ask-id.ts';
import { formElicitation } from './ask-stream.ts';
import type { Call } from './call.ts';
import { waitOver, RpcError } from './rpc-error.ts';

/** Legs of one call. */
const MOST_LEGS = 10;

type Answer = { action: unknown; content: unknown } | undefined;

/** Open questions of one session. */
export type FirstQuestions = ReturnType<typeof openFirstQuestions>;

export function openFirstQuestions() {
  const open = new Map<string, (answer: Answer) => void>();

  return {
    /** Hands an answer to the call that asked. False when no call waits for it. */
    answer(id: string, answer: Answer): boolean {
      const settle = open.get(id);
      if (settle === undefined) return false;
      open.delete(id);
      settle(answer);
      return true;
    },

    /** Asks one form and waits. */
    async ask(call: Call, question: AskFirst['questions'][string]): Promise<Answer> {
      if (call.signal.aborted) throw waitOver();
      const id = newFirstId();
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const stop = (): void => reject(waitOver());
      open.set(id, resolve);
      call.signal.addEventListener('abort', stop, { once: true });
      try {
        await call.send({ id, method: 'elicitation/create', params: formElicitation(call.client, question) });
        return await promise;
      } finally {
        open.delete(id);
        call.signal.removeEventListener('abort', stop);
      }
    },
  };
}

/** Either what the work gave, or that a question was declined, dismissed or could not be shown. */
export type Legs<Value> =
  { readonly kind: 'done'; readonly value: Value } | { readonly kind: 'unanswered'; readonly name: string };

/**
 * Runs work that may throw `askFirst(…)`, asking and running it again until it needs nothing more.
 *
 * @throws RpcError 4012 when the client shows no forms.
 */
export async function withAnswers<Value>(
  first: FirstQuestions,
  call: Call,
  work: (answers: ToolCall<unknown>['answers'], state: Json) => Promise<Value>,
): Promise<Legs<Value>> {
  const answers = new Map<string, FormContent>();
  let state: Json = null;
  for (let leg = 0; leg < MOST_LEGS; leg += 1) {
    try {
      return { kind: 'done', value: await work(answers, state) };
    } catch (error) {
      if (!(error instanceof AskFirst)) throw error;
      state = error.state;
      for (const [name, question] of Object.entries(error.questions)) {
        if (answers.has(name)) continue;
        const content = await contentOf(first, call, question);
        if (content === undefined) return { kind: 'unanswered', name };
        answers.set(name, content);
      }
    }
  }
  throw new Error('a tool keeps asking');
}

async function contentOf(
  first: FirstQuestions,
  call: Call,
  question: AskFirst['questions'][string],
): Promise<FormContent | undefined> {
  if (!call.client.modes.form) {
    throw new RpcError(
      TASK_ERROR_CODES.elicitation_unsupported,
      'This tool has a question for a person, and this client cannot ask one: it has not declared MCP elicitation (form). Use a client that does.',
      { reason: 'elicitation_unsupported', requiredCapabilities: { elicitation: { form: {} } } },
    );
  }
  let message = question.message;
  for (let tries = 0; tries < 3; tries += 1) {
    const answer = await first.ask(call, { ...question, message });
    if (answer?.action !== 'accept') return undefined;
    const verdict = readForm(question.schema, answer.content);
    if (verdict.ok) return verdict.content;
    message = `${question.message} (${verdict.problems.join('; ')})`;
  }
  return undefined;
}
