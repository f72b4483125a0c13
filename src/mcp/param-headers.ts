/**
 * Arguments that clients mirror into `Mcp-Param-*` headers (MCP 2026-07-28, server/tools, "x-mcp-header"). At start: which
 * fields of a schema are mirrored, and what is wrong with a declaration. On a call: whether headers and arguments agree.
 * Pure.
 */
import { isObject, type JsonObject } from './json-rpc.ts';
import { decodeHeaderValue } from './header-value.ts';

/** A field that is mirrored. */
export interface ParamHeader {
  /** Lower case, with its prefix. */
  readonly header: string;
  /** Names of the properties that lead to the field. */
  readonly path: readonly string[];
  readonly type: 'string' | 'integer' | 'boolean';
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES = ['string', 'integer', 'boolean'];
const MARK = 'x-mcp-header';

/** The mirrored fields of an input schema, and the problems of their declarations with the path of each. */
export function readParamHeaders(schema: JsonObject): { headers: ParamHeader[]; problems: string[] } {
  const headers: ParamHeader[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();

  function declare(node: JsonObject, path: readonly string[], reachable: boolean): void {
    const name = node[MARK];
    const at = path.join('.');
    if (!reachable) problems.push(`${at}: ${MARK} is only allowed along a chain of properties`);
    else if (typeof name !== 'string' || !TOKEN.test(name)) {
      problems.push(`${at}: ${MARK} must be a header name (RFC 9110, 5.1)`);
    } else if (typeof node['type'] !== 'string' || !TYPES.includes(node['type'])) {
      problems.push(`${at}: ${MARK} is only allowed on string, integer and boolean`);
    } else if (seen.has(name.toLowerCase())) {
      problems.push(`${at}: ${MARK} "${name}" is used twice (letters of either case are the same)`);
    } else {
      seen.add(name.toLowerCase());
      headers.push({
        header: `mcp-param-${name.toLowerCase()}`,
        path,
        type: node['type'] as ParamHeader['type'],
      });
    }
  }

  function visit(node: unknown, path: readonly string[], reachable: boolean): void {
    if (Array.isArray(node)) {
      node.forEach((item, index) => visit(item, [...path, String(index)], false));
      return;
    }
    if (!isObject(node)) return;
    if (Object.hasOwn(node, MARK)) declare(node, path, reachable && path.length > 0);
    for (const [keyword, value] of Object.entries(node)) {
      if (keyword === 'properties' && isObject(value)) {
        for (const [name, field] of Object.entries(value)) visit(field, [...path, name], reachable);
      } else if (keyword !== MARK && keyword !== 'default' && keyword !== 'enum' && keyword !== 'const') {
        visit(value, [...path, keyword], false);
      }
    }
  }

  visit(schema, [], true);
  return { headers, problems };
}

/**
 * Holds the headers of a call against its arguments. A value that is missing or null in the arguments needs no header.
 *
 * @returns what disagrees, or undefined.
 */
export function paramHeaderProblem(
  declared: readonly ParamHeader[],
  args: unknown,
  headers: { readonly [name: string]: string | readonly string[] | undefined },
): string | undefined {
  for (const { header, path, type } of declared) {
    const raw = headers[header];
    const given = typeof raw === 'string' ? decodeHeaderValue(raw) : undefined;
    // A header that is there must be readable, whatever the arguments say.
    if (raw !== undefined && given === undefined) return `${header}: the value is not validly encoded`;
    const value = valueAt(args, path);
    if (value === undefined || value === null) {
      if (given !== undefined) return `${header}: the arguments have no "${path.join('.')}"`;
      continue;
    }
    // A value of another type is the schema's affair; there is nothing to compare it with.
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    if (given === undefined) return `${header}: is missing, but the arguments have "${path.join('.')}"`;
    const same =
      type === 'integer' && typeof value === 'number'
        ? /^[+-]?\d+(?:\.0+)?$/.test(given) && Number(given) === value
        : given === String(value);
    if (!same) return `${header}: does not match "${path.join('.')}" of the arguments`;
  }
  return undefined;
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value: unknown = args;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}
