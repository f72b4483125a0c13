import { expect, test } from 'vitest';
import { clientName } from '../../src/mcp/client-name.ts';

test.each([
  ['its name', { name: 'claude-ai', version: '1' }, 'claude-ai'],
  ['its name, not its title: rules are written for names', { name: 'host', title: 'A Host' }, 'host'],
  ['its own name behind a bridge', { name: 'claude-ai (via mcp-remote 0.15.1)' }, 'claude-ai'],
  ['its name with parentheses of its own', { name: 'host (beta)' }, 'host (beta)'],
  ['the beginning of a long name', { name: 'x'.repeat(100) }, 'x'.repeat(64)],
  ['a long name before the bridge', { name: `${'x'.repeat(60)} (via mcp-remote 1.0.0)` }, 'x'.repeat(60)],
  ['nothing for an empty name', { name: '' }, null],
  ['nothing for a name that is no text', { name: 7 }, null],
  ['nothing when it says nothing', undefined, null],
  ['nothing for a list', ['host'], null],
])('a client is known by %s', (_, info, name) => {
  expect(clientName(info)).toBe(name);
});
