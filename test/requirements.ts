/** What the MCP specification asks of a server, sentence by sentence, and the tests that prove it. */
import type { Requirement } from './support/requirement.ts';

export const MCP_REQUIREMENTS: readonly Requirement[] = [
  {
    id: 'tasks-ext-update-unknown-key',
    source: 'ext-tasks, tasks/update',
    level: 'SHOULD',
    says: 'Answers for unknown or already answered keys are ignored.',
    provedBy: [
      'wire/mcp26-tasks.test.ts › questions of a task are listed until each is answered; answers for unknown keys are ignored',
    ],
  },
];
