/** `tools/list` (MCP 2025-11-25, server/tools), as the revision of the session knows tools. */
import { z } from 'zod';
import type { AnyTool } from '../../engine/define.ts';
import type { Client } from './client.ts';
import { COMPANION_TOOLS, companionsListed } from './companion.ts';
import type { LegacyParts } from './parts.ts';
import { REVISIONS } from './revisions.ts';

/** How a tool may be called (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation"). */
export function taskSupportOf(tool: AnyTool): 'forbidden' | 'optional' | 'required' {
  return tool.kind === 'tool' ? 'forbidden' : (tool.taskSupport ?? 'optional');
}

const schemas = new WeakMap<AnyTool, Record<string, unknown>>();

function inputSchemaOf(tool: AnyTool): Record<string, unknown> {
  const known = schemas.get(tool);
  if (known !== undefined) return known;
  const schema: Record<string, unknown> =
    tool.input === undefined
      ? { type: 'object', properties: {} }
      : { ...z.toJSONSchema(tool.input, { io: 'input' }) };
  schemas.set(tool, schema);
  return schema;
}

/** The tools that a client may call. A revision without tasks does not see tools that require them. */
export function listTools(parts: LegacyParts, client: Client): { tools: Record<string, unknown>[] } {
  const knowsTasks = REVISIONS[client.revision].tasks;
  const tools = [...parts.tools.values()]
    .filter((tool) => knowsTasks || taskSupportOf(tool) !== 'required')
    .map((tool) => ({
      name: tool.name,
      ...(tool.title === undefined ? {} : { title: tool.title }),
      description: tool.description,
      inputSchema: inputSchemaOf(tool),
      ...(tool.annotations === undefined ? {} : { annotations: tool.annotations }),
      ...(knowsTasks ? { execution: { taskSupport: taskSupportOf(tool) } } : {}),
    }));
  return { tools: [...tools, ...(companionsListed(parts, client) ? COMPANION_TOOLS : [])] };
}
