import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { drawTransitions } from '../../src/task/transitions.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test('the diagram of the states in the README is the one that the table of moves draws', () => {
  const between = /<!-- transitions -->([\s\S]*)<!-- \/transitions -->/.exec(readme)?.[1] ?? '';
  expect(between.trim()).toBe(`\`\`\`mermaid\n${drawTransitions()}\n\`\`\``);
});

test('every npm script that the README names exists', () => {
  const scripts = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = [...readme.matchAll(/npm run ([\w:]+)/g)].map((match) => match[1] ?? '');
  expect(named.length).toBeGreaterThan(2);
  for (const name of named) expect(scripts.scripts).toHaveProperty([name]);
});
