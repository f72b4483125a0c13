/**
 * The tools of this server as the protocol faces list and call them: schemas written once, arguments held against them,
 * header mirrors checked. Says nothing of how a tool runs.
 *
 * The first tool of the list is one that needs no arguments, where there is one: clients that probe a server call it.
 */
import { z } from 'zod';
import { Refusal } from '../errors.ts';
import type { AnyTool, ToolAnnotations } from '../engine/define.ts';
import type { Json } from '../store/records.ts';
import type { JsonObject } from './json-rpc.ts';
import { readParamHeaders, type ParamHeader } from './param-headers.ts';

/** A tool as MCP lists it, without the fields that only one revision has. */
export interface ToolListing {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** JSON Schema 2020-12. */
  readonly inputSchema: JsonObject & { readonly type: 'object' };
  readonly annotations?: ToolAnnotations;
}

/** A tool with what was worked out of its definition. */
export interface CatalogueEntry {
  readonly tool: AnyTool;
  readonly listing: ToolListing;
  readonly paramHeaders: readonly ParamHeader[];
}

/** Arguments that fit, with defaults filled in, or what does not fit with the path of each problem. */
export type ArgumentsVerdict =
  { readonly ok: true; readonly args: Json } | { readonly ok: false; readonly problems: readonly string[] };

export type Catalogue = ReturnType<typeof openCatalogue>;

/**
 * Opens the catalogue.
 *
 * @throws Refusal `configuration_invalid`, naming every tool and field with a problem.
 */
export function openCatalogue(tools: Iterable<AnyTool>) {
  let entries = new Map<string, CatalogueEntry>();
  let ordered: readonly CatalogueEntry[] = [];
  const listeners = new Set<() => void>();

  function take(next: Iterable<AnyTool>): void {
    const problems: string[] = [];
    const built = new Map<string, CatalogueEntry>();
    for (const tool of next) {
      if (built.has(tool.name)) problems.push(`tools.${tool.name}: is defined twice`);
      const { entry, problems: found } = describe(tool);
      problems.push(...found.map((problem) => `tools.${tool.name}.input.${problem}`));
      built.set(tool.name, entry);
    }
    if (problems.length > 0) throw new Refusal('configuration_invalid', { message: problems.join('\n') });
    entries = built;
    ordered = [...built.values()].toSorted((a, b) => eagerness(a) - eagerness(b));
  }

  take(tools);

  return {
    get: (name: string): CatalogueEntry | undefined => entries.get(name),

    /** All entries in the order of the list. */
    all: (): readonly CatalogueEntry[] => ordered,

    /** Replaces the tools and tells open streams. @throws Refusal `configuration_invalid`; then nothing changes. */
    replace(next: Iterable<AnyTool>): void {
      take(next);
      listeners.forEach((tell) => tell());
    },

    /** Calls `tell` after every replacement; returns what ends it. */
    onChange(tell: () => void): () => void {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
  };
}

/** Lists first what succeeds at once without arguments, then what at least accepts none. */
function eagerness({ tool }: CatalogueEntry): number {
  const takesNone = tool.input === undefined || tool.input.safeParse({}).success;
  if (!takesNone) return 2;
  return tool.kind === 'tool' ? 0 : 1;
}

function describe(tool: AnyTool): { entry: CatalogueEntry; problems: string[] } {
  const inputSchema = schemaOf(tool);
  const { headers, problems } = readParamHeaders(inputSchema);
  const listing: ToolListing = {
    name: tool.name,
    ...(tool.title === undefined ? {} : { title: tool.title }),
    description: tool.description,
    inputSchema,
    ...(tool.annotations === undefined ? {} : { annotations: tool.annotations }),
  };
  return { entry: { tool, listing, paramHeaders: headers }, problems };
}

function schemaOf(tool: AnyTool): JsonObject & { type: 'object' } {
  if (tool.input === undefined) return { type: 'object', additionalProperties: false };
  const { $schema: _dialect, ...schema } = z.toJSONSchema(tool.input, {
    target: 'draft-2020-12',
    io: 'input',
  });
  return { ...schema, type: 'object' };
}

/** Holds the arguments of a call against the tool's schema. No arguments count as an empty object. */
export function readArguments(tool: AnyTool, given: unknown): ArgumentsVerdict {
  const value = given === undefined || given === null ? {} : given;
  if (tool.input === undefined) {
    const names = typeof value === 'object' && !Array.isArray(value) ? Object.keys(value) : undefined;
    if (names === undefined) return { ok: false, problems: ['arguments: must be an object'] };
    if (names.length > 0) {
      return {
        ok: false,
        problems: names.map((name) => `arguments.${name}: is not an argument of this tool`),
      };
    }
    return { ok: true, args: {} };
  }
  const parsed = tool.input.safeParse(value);
  if (parsed.success) return { ok: true, args: parsed.data as Json };
  return {
    ok: false,
    problems: parsed.error.issues.map(
      (issue) => `${['arguments', ...issue.path.map(String)].join('.')}: ${issue.message}`,
    ),
  };
}
