/**
 * The tools that the official conformance suite expects of a server under test, written only with what an embedder
 * imports. Those that need sampling, roots, progress or logging are left out: Keyturn offers none of them.
 */
import { z } from 'zod';
import { askFirst, defineJob, defineTool, ProtocolError, text, type AnyTool } from '../../src/index.ts';

type Form = Parameters<typeof askFirst>[0][string]['schema'];

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const nameForm: Form = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
};

/** Asks one form before it answers; `say` makes the answer of it. */
function asking(
  name: string,
  question: { key: string; message: string; schema: Form },
  say: (content: Record<string, unknown>) => string,
): AnyTool {
  return defineTool({
    name,
    description: `Asks "${question.message}" and answers.`,
    run: ({ answers }) => {
      const content = answers.get(question.key);
      if (content === undefined) throw askFirst({ [question.key]: question }, { asked: question.key });
      return text(say(content));
    },
  });
}

const completed = (content: Record<string, unknown>): string =>
  `Elicitation completed: action=accept, content=${JSON.stringify(content)}`;

/** Tools that answer at once. */
const atOnce: readonly AnyTool[] = [
  defineTool({
    name: 'test_simple_text',
    description: 'Says one thing.',
    run: () => text('This is a simple text response for testing.'),
  }),
  defineTool({
    name: 'test_image_content',
    description: 'Shows one pixel.',
    run: () => ({ content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] }),
  }),
  defineTool({
    name: 'test_audio_content',
    description: 'Plays nothing.',
    run: () => ({ content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] }),
  }),
  defineTool({
    name: 'test_embedded_resource',
    description: 'Carries a resource.',
    run: () => ({
      content: [
        {
          type: 'resource',
          resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
          },
        },
      ],
    }),
  }),
  defineTool({
    name: 'test_multiple_content_types',
    description: 'Carries three kinds of content.',
    run: () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', data: PIXEL, mimeType: 'image/png' },
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: JSON.stringify({ test: 'data', value: 123 }),
          },
        },
      ],
    }),
  }),
  defineTool({
    name: 'test_error_handling',
    description: 'Fails.',
    run: () => text('This tool intentionally returns an error for testing', { isError: true }),
  }),
  defineTool({
    name: 'test_streaming_elicitation',
    description: 'Asks for a name.',
    run: ({ answers }) => {
      if (!answers.has('user_name'))
        throw askFirst({ user_name: { schema: nameForm, message: 'What is your name?' } });
      return text('Thank you.');
    },
  }),
  defineTool({ name: 'test_logging_tool', description: 'Has nothing to log.', run: () => text('done') }),
  defineTool({
    name: 'greet',
    description: 'Says hello.',
    input: z.object({ name: z.string().default('you') }),
    run: ({ args }) => text(`Hello, ${args.name}!`),
  }),
  defineTool({
    name: 'test_x_mcp_header',
    description: 'Says where it was routed.',
    input: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
    run: ({ args }) => text(args.region),
  }),
];

/** Tools that ask before they answer. */
const askingTools: readonly AnyTool[] = [
  asking(
    'test_input_required_result_elicitation',
    { key: 'user_name', message: 'What is your name?', schema: nameForm },
    (content) => `Hello, ${String(content['name'])}!`,
  ),
  ...(['request_state', 'tampered_state'] as const).map((what) =>
    asking(
      `test_input_required_result_${what}`,
      {
        key: 'confirm',
        message: 'Please confirm',
        schema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
      },
      () => 'state-ok',
    ),
  ),
  defineTool({
    name: 'test_input_required_result_multi_round',
    description: 'Asks twice.',
    run: ({ answers }) => {
      const who = answers.get('step1');
      if (who === undefined) {
        throw askFirst({ step1: { schema: nameForm, message: 'Step 1: What is your name?' } });
      }
      const colour = answers.get('step2');
      if (colour === undefined) {
        throw askFirst({
          step2: {
            schema: { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] },
            message: 'Step 2: What is your favorite color?',
          },
        });
      }
      return text(`${String(who['name'])} likes ${String(colour['color'])}`);
    },
  }),
  defineTool({
    name: 'test_elicitation',
    description: 'Asks with the words of its argument.',
    input: z.object({ message: z.string() }),
    run: ({ args, answers }) => {
      const content = answers.get('user');
      if (content === undefined) {
        throw askFirst({
          user: {
            message: args.message,
            schema: {
              type: 'object',
              properties: {
                username: { type: 'string', description: "User's response" },
                email: { type: 'string', description: "User's email address" },
              },
              required: ['username', 'email'],
            },
          },
        });
      }
      return text(`User response: action=accept, content=${JSON.stringify(content)}`);
    },
  }),
  asking(
    'test_elicitation_sep1034_defaults',
    {
      key: 'profile',
      message: 'Please check these values',
      schema: {
        type: 'object',
        properties: {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
      },
    },
    completed,
  ),
  asking(
    'test_elicitation_sep1330_enums',
    {
      key: 'choices',
      message: 'Please choose',
      schema: {
        type: 'object',
        properties: {
          untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
          titledSingle: {
            type: 'string',
            oneOf: [
              { const: 'value1', title: 'First Option' },
              { const: 'value2', title: 'Second Option' },
              { const: 'value3', title: 'Third Option' },
            ],
          },
          legacyEnum: {
            type: 'string',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'],
          },
          untitledMulti: {
            type: 'array',
            items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
          },
          titledMulti: {
            type: 'array',
            items: {
              anyOf: [
                { const: 'value1', title: 'First Choice' },
                { const: 'value2', title: 'Second Choice' },
                { const: 'value3', title: 'Third Choice' },
              ],
            },
          },
        },
      },
    },
    completed,
  ),
];

const confirmForm: Form = {
  type: 'object',
  properties: { confirm: { type: 'boolean' } },
  required: ['confirm'],
};

/** Jobs. */
const jobs: readonly AnyTool[] = [
  defineJob({
    name: 'slow_compute',
    description: 'Computes for some seconds.',
    input: z.object({ seconds: z.number().min(0), label: z.string().default('') }),
    async run(job) {
      await job.sleep(job.args.seconds * 1_000);
      return text(`${job.args.label}: computed for ${job.args.seconds} s`);
    },
  }),
  defineJob({
    name: 'failing_job',
    description: 'Fails after a second.',
    taskSupport: 'required',
    async run(job) {
      await job.sleep(1_000);
      return text('The job failed.', { isError: true });
    },
  }),
  defineJob({
    name: 'protocol_error_job',
    description: 'Ends in a JSON-RPC error.',
    async run() {
      await Promise.resolve();
      throw new ProtocolError(-32603, 'The job ended in a protocol error.');
    },
  }),
  defineJob({
    name: 'confirm_delete',
    description: 'Asks before it deletes.',
    input: z.object({ filename: z.string() }),
    async run(job) {
      const { confirm } = await job.ask('confirm', confirmForm, `Delete ${job.args.filename}?`);
      return text(confirm === true ? `Deleted ${job.args.filename}` : 'Kept');
    },
  }),
  defineJob({
    name: 'multi_input',
    description: 'Asks two things at once.',
    async run(job) {
      const answers = await job.askAll({
        first: { schema: nameForm, message: 'First name?' },
        second: { schema: nameForm, message: 'Second name?' },
      });
      return text(`${String(answers['first']?.['name'])}, ${String(answers['second']?.['name'])}`);
    },
  }),
  defineJob({
    name: 'test_tool_with_task',
    description: 'Asks for a name, then works as a task.',
    taskSupport: 'required',
    before: ({ answers }) => {
      const who = answers.get('user_name');
      if (who === undefined) {
        throw askFirst({ user_name: { schema: nameForm, message: 'What is your name?' } });
      }
      return Promise.resolve({ args: { name: String(who['name']) } });
    },
    run: (job) => Promise.resolve(text(`Worked for ${(job.args as { name?: string }).name ?? ''}`)),
  }),
];

/** All of them. `onToolChange` is what `test_trigger_tool_change` does. */
export function fixtureTools(onToolChange: () => void): AnyTool[] {
  return [
    ...atOnce,
    ...askingTools,
    ...jobs,
    defineTool({
      name: 'test_trigger_tool_change',
      description: 'Changes the list of tools.',
      run: () => {
        onToolChange();
        return text('The list of tools has changed.');
      },
    }),
  ];
}
