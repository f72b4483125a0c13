/** `tools/list` (MCP 2025-11-25, server/tools), as the revision of the session knows tools. */
import type { AnyTool } from '../../engine/define.ts';
import type { Client } from './client.ts';
import { COMPANION_TOOLS, companionsListed } from './companion.ts';
import type { LegacyParts } from './parts.ts';
import { REVISIONS } from './revisions.ts';

/** How a tool may be called (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation"). */
export function taskSupportOf(tool: AnyTool): 'forbidden' | 'optional' | 'required' {
  return tool.kind === 'tool' ? 'forbidden' : (tool.taskSupport ?? 'optional');
}

/** The tools that a client may call. A revision without tasks does not see tools that require them. */
export function listTools(parts: LegacyParts, client: Client): { tools: Record<string, unknown>[] } {
  const knowsTasks = REVISIONS[client.revision].tasks;
  const tools = parts.catalogue
    .all()
    .filter(({ tool }) => knowsTasks || taskSupportOf(tool) !== 'required')
    .map(({ tool, listing }) => ({
      ...listing,
      ...(knowsTasks ? { execution: { taskSupport: taskSupportOf(tool) } } : {}),
    }));
  return { tools: [...tools, ...(companionsListed(parts, client) ? COMPANION_TOOLS : [])] };
}
