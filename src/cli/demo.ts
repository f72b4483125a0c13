/** `keyturn demo`: the whole story on real parts, told in plain lines. Exit code 0 when every line of it came true. */
import { parseArgs } from 'node:util';
import { sandboxed } from './sandboxed.ts';

export async function demo(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { interactive: { type: 'boolean', default: false } } });
  const { tellStory } = await sandboxed(() => import('../demo/story.ts'));
  return tellStory({ interactive: values.interactive, say: (line) => process.stdout.write(`${line}\n`) });
}
