/**
 * Several accounts of one person at one provider: a tool that says `accounts: 'several'` takes an argument `account`, the
 * name by which the person tells them apart. Which one is meant is settled before there is a task, and kept in its
 * arguments: connections that come and go later change nothing for it.
 */
import { z } from 'zod';
import { Refusal } from '../errors.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Json } from '../store/records.ts';
import { askFirst, type AnyTool, type Before, type JobDefinition, type ToolCall } from './define.ts';
import type { ProviderRegistry } from './providers.ts';

/** The account of whoever has only one. */
export const DEFAULT_ACCOUNT = 'default';

/** Accounts of one provider that are offered in a question. */
const MOST_OFFERED = 20;
const QUESTION = 'account';

const accountName = z
  .string()
  .regex(
    /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,63}$/u,
    'must be a short name: letters, digits, spaces, ".", "_", "-"',
  )
  .describe(
    'Which of their accounts the person means, by the name that they call it; a new name connects another account. Leave it out unless the person named one.',
  );

/**
 * Completes a job that may work on several accounts.
 *
 * @throws Refusal `configuration_invalid` when the job needs more than one provider, or has an argument of that name.
 */
export function withAccounts(tool: AnyTool, parts: { ledger: Ledger; providers: ProviderRegistry }): AnyTool {
  if (tool.kind !== 'job' || tool.accounts !== 'several') return tool;
  const [provider, ...more] = Object.keys(tool.requires ?? {});
  if (provider === undefined || more.length > 0 || tool.input?.shape[QUESTION] !== undefined) {
    throw new Refusal('configuration_invalid', {
      message: `tools.${tool.name}.accounts: "several" is for a job that requires one provider and has no argument "account"`,
    });
  }
  return {
    ...tool,
    input: (tool.input ?? z.strictObject({})).extend({ [QUESTION]: accountName.optional() }),
    async before(call) {
      const before = (await tool.before?.(call)) ?? {};
      if ('refused' in before) return before;
      return settle(tool, provider, call, (before.args ?? call.args) as Record<string, Json>);
    },
  };

  async function settle(
    job: JobDefinition,
    id: string,
    call: ToolCall<Record<string, unknown>>,
    args: Record<string, Json>,
  ): Promise<Before> {
    if (args[QUESTION] !== undefined) return { args };
    const names = await accountsOf(call.caller.owner, id);
    const [only = DEFAULT_ACCOUNT] = names;
    if (names.length < 2) return { args: only === DEFAULT_ACCOUNT ? args : { ...args, [QUESTION]: only } };
    const answer = call.answers.get(QUESTION)?.[QUESTION];
    if (typeof answer === 'string') return { args: { ...args, [QUESTION]: answer } };
    const name = parts.providers.get(id).displayName;
    if (!call.declared.modes.form) {
      return {
        refused: `The person has several accounts at ${name}. Ask which one, and call again with "account" as one of: ${names.join(', ')}.`,
      };
    }
    throw askFirst({
      [QUESTION]: {
        message: `Which account at ${name} is meant for "${job.title ?? job.name}"?`,
        schema: {
          type: 'object',
          properties: { [QUESTION]: { type: 'string', title: `Account at ${name}`, enum: names } },
          required: [QUESTION],
        },
      },
    });
  }

  async function accountsOf(owner: string, id: string): Promise<string[]> {
    const found = await parts.ledger.findConnections({ owner, provider: id, after: '', limit: 1_000 });
    return found
      .filter((one) => one.record !== null)
      .map((one) => one.account)
      .toSorted()
      .slice(0, MOST_OFFERED);
  }
}
