import { expect, test } from 'vitest';
import { findSecrets } from '../../src/demo/search.ts';
import { tellStory } from '../../src/demo/story.ts';

test('the demo tells the whole story, each line after it came true, and finds no secret outside the vault', async () => {
  const lines: string[] = [];
  const code = await tellStory({ interactive: false, say: (line) => void lines.push(line) });
  expect(lines.at(-1)).toBe('Secrets found outside the vault: 0');
  expect(code).toBe(0);
  expect(lines.filter((line) => /^\d\. /.test(line))).toHaveLength(8);
}, 60_000);

test('the search of the demo finds a secret, or eight characters of its beginning', () => {
  const secret = 'Zq3v9Lr8TtYw0PpX';
  const places = [
    { name: 'logs', text: `GET /x?token=${secret.slice(0, 8)}…` },
    { name: 'pages', text: 'nothing here' },
  ];
  expect(findSecrets(places, [secret])).toEqual(['logs']);
});
