/** Tools for tests of the protocol faces: small, and each shows one thing. */
import { z } from 'zod';
import {
  askFirst,
  defineJob,
  defineTool,
  ProtocolError,
  text,
  type AnyTool,
} from '../../src/engine/define.ts';
import type { FormSchema } from '../../src/elicitation/form.ts';

const nameForm: FormSchema = {
  type: 'object',
  properties: { name: { type: 'string', title: 'Name', minLength: 2 } },
  required: ['name'],
};

/** Answers at once; no arguments are needed. */
export const greet = defineTool({
  name: 'greet',
  title: 'Greet',
  description: 'Says hello.',
  input: z.object({ name: z.string().default('you') }),
  run: ({ args }) => text(`Hello, ${args.name}!`),
});

/** Has a mirrored argument. */
export const route = defineTool({
  name: 'route',
  description: 'Says where a call was routed.',
  input: z.object({
    region: z.string().meta({ 'x-mcp-header': 'Region' }),
    shard: z.int().optional().meta({ 'x-mcp-header': 'Shard' }),
  }),
  run: ({ args }) => text(`${args.region}/${args.shard ?? '-'}`),
});

/** Asks one thing after the other before it answers. */
export const interview = defineTool({
  name: 'interview',
  description: 'Asks for a name, then for a colour.',
  run: ({ answers }) => {
    const who = answers.get('who');
    if (who === undefined)
      throw askFirst({ who: { schema: nameForm, message: 'Who are you?' } }, { step: 1 });
    const colour = answers.get('colour');
    if (colour === undefined) {
      throw askFirst(
        {
          colour: {
            schema: {
              type: 'object',
              properties: { colour: { type: 'string', enum: ['red', 'blue'] } },
              required: ['colour'],
            },
            message: 'Which colour?',
          },
        },
        { step: 2 },
      );
    }
    return text(`${String(who['name'])} likes ${String(colour['colour'])}`);
  },
});

/** Ends as its argument says. */
export const breaks = defineTool({
  name: 'breaks',
  description: 'Ends in an error.',
  input: z.object({ how: z.enum(['protocol', 'bug', 'result']) }),
  run: ({ args }) => {
    if (args.how === 'protocol') throw new ProtocolError(7001, 'Chosen by the tool.');
    if (args.how === 'bug') throw new Error('a detail that stays inside');
    return text('It did not work.', { isError: true });
  },
});

/** Takes as long as it is told. */
export const work = defineJob({
  name: 'work',
  title: 'Work',
  description: 'Works for a while.',
  input: z.object({ ms: z.int().min(0).default(0), label: z.string().default('work') }),
  async run(job) {
    await job.sleep(job.args.ms);
    return text(`${job.args.label}: done`, { structuredContent: { label: job.args.label } });
  },
});

/** Ends as its argument says. */
export const fails = defineJob({
  name: 'fails',
  description: 'Ends in an error.',
  input: z.object({ how: z.enum(['protocol', 'bug', 'result']) }),
  async run(job) {
    await Promise.resolve();
    if (job.args.how === 'protocol') throw new ProtocolError(7002, 'Chosen by the job.');
    if (job.args.how === 'bug') throw new Error('a detail that stays inside');
    return text('It did not work.', { isError: true });
  },
});

/** Only for clients with tasks. */
export const onlyTasks = defineJob({
  name: 'only_tasks',
  description: 'Runs as a task or not at all.',
  taskSupport: 'required',
  run: () => Promise.resolve(text('done')),
});

/** Stops for a form. */
export const confirm = defineJob({
  name: 'confirm',
  description: 'Asks before it deletes.',
  input: z.object({ file: z.string() }),
  async run(job) {
    const { sure } = await job.ask(
      'sure',
      { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
      `Delete ${job.args.file}?`,
    );
    return text(sure === true ? `Deleted ${job.args.file}` : 'Kept');
  },
});

/** Stops for two forms at once. */
export const both = defineJob({
  name: 'both',
  description: 'Asks two things at once.',
  async run(job) {
    const answers = await job.askAll({
      first: { schema: nameForm, message: 'First?' },
      second: { schema: nameForm, message: 'Second?' },
    });
    return text(`${String(answers['first']?.['name'])} and ${String(answers['second']?.['name'])}`);
  },
});

/** Asks before there is a task. */
export const prepared = defineJob({
  name: 'prepared',
  description: 'Asks for a name, then works with it.',
  before: ({ answers }) => {
    const who = answers.get('who');
    if (who === undefined) throw askFirst({ who: { schema: nameForm, message: 'Who are you?' } });
    return Promise.resolve({ args: { name: String(who['name']) } });
  },
  run: (job) => Promise.resolve(text(`Prepared for ${(job.args as { name?: string }).name ?? 'nobody'}`)),
});

export const TOOLS: readonly AnyTool[] = [
  route,
  greet,
  interview,
  breaks,
  work,
  fails,
  onlyTasks,
  confirm,
  both,
  prepared,
];
