/**
 * Questions without secrets (MCP, client/elicitation, "Form Mode"): a flat object of primitive fields. Refuses, when a
 * job is defined, fields that look like secrets or like places for a URL; refuses, when an answer comes, anything that
 * does not fit. Pure.
 */

/** A field of a form: the subset of JSON Schema that MCP allows. */
export type FormField =
  | {
      type: 'string';
      title?: string;
      description?: string;
      minLength?: number;
      maxLength?: number;
      pattern?: string;
      format?: 'email' | 'uri' | 'date' | 'date-time';
      enum?: string[];
      enumNames?: string[];
      oneOf?: { const: string; title: string }[];
      default?: string;
    }
  | {
      type: 'number' | 'integer';
      title?: string;
      description?: string;
      minimum?: number;
      maximum?: number;
      default?: number;
    }
  | { type: 'boolean'; title?: string; description?: string; default?: boolean }
  | {
      type: 'array';
      title?: string;
      description?: string;
      minItems?: number;
      maxItems?: number;
      items:
        { type: 'string'; enum: string[] } | { anyOf: { const: string; title: string }[]; type?: 'string' };
      default?: string[];
    };

/** A flat form. */
export interface FormSchema {
  type: 'object';
  properties: Record<string, FormField>;
  required?: string[];
}

/** Words that make a field look like a place for a secret. */
const SECRET_WORDS =
  /(?:pass(?:word|phrase|code)|\bpwd\b|secret|token|api[\s_-]?key|private[\s_-]?key|credential|\bpin\b|\botp\b|one[\s_-]?time|cvv|card[\s_-]?number|\bssn\b|bearer|\bauth(?:orization)?[\s_-]?code)/i;

/** Splits `apiKey` into `api Key`, so that words are found in any spelling. */
function spaced(name: string): string {
  return name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/[_-]+/g, ' ');
}

/**
 * The problems of a form, each with the path of its field. An empty list means that it may be asked.
 */
export function formProblems(schema: FormSchema): string[] {
  const problems: string[] = [];
  if (schema.type !== 'object') problems.push('type: must be "object"');
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) problems.push('properties: at least one field');
  for (const [name, field] of properties) {
    const path = `properties.${name}`;
    const words = [spaced(name), field.title ?? '', field.description ?? ''].join(' ');
    if (SECRET_WORDS.test(words)) {
      problems.push(`${path}: looks like a secret; ask for it by a link (credential), never in a form`);
    }
    if (field.type === 'string' && field.format === 'uri') {
      problems.push(`${path}.format: a form does not ask for addresses`);
    }
    if (!['string', 'number', 'integer', 'boolean', 'array'].includes(field.type)) {
      problems.push(`${path}.type: only string, number, integer, boolean and lists of choices`);
    }
  }
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(schema.properties ?? {}, name))
      problems.push(`required: no field is called "${name}"`);
  }
  return problems;
}

/** A form's answer: primitives and lists of strings by field name. */
export type FormContent = Record<string, string | number | boolean | string[]>;

/** Either the content, reduced to the fields of the form, or what does not fit. */
export type FormVerdict = { ok: true; content: FormContent } | { ok: false; problems: string[] };

/** Holds an answer against its form. Unknown fields are dropped; defaults are not filled in. */
export function readForm(schema: FormSchema, content: unknown): FormVerdict {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return { ok: false, problems: ['content: must be an object'] };
  }
  const given = content as Record<string, unknown>;
  const problems: string[] = [];
  const read: FormContent = {};
  for (const [name, field] of Object.entries(schema.properties)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || value === null) {
      if (schema.required?.includes(name) === true) problems.push(`content.${name}: is required`);
      continue;
    }
    const problem = fieldProblem(field, value);
    if (problem === undefined) read[name] = value as FormContent[string];
    else problems.push(`content.${name}: ${problem}`);
  }
  return problems.length === 0 ? { ok: true, content: read } : { ok: false, problems };
}

function fieldProblem(field: FormField, value: unknown): string | undefined {
  switch (field.type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false';
    case 'integer':
    case 'number':
      if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number';
      if (field.type === 'integer' && !Number.isInteger(value)) return 'must be a whole number';
      if (field.minimum !== undefined && value < field.minimum) return `must be at least ${field.minimum}`;
      if (field.maximum !== undefined && value > field.maximum) return `must be at most ${field.maximum}`;
      return undefined;
    case 'string':
      return stringProblem(field, value);
    case 'array':
      return arrayProblem(field, value);
  }
}

function stringProblem(field: Extract<FormField, { type: 'string' }>, value: unknown): string | undefined {
  if (typeof value !== 'string') return 'must be a text';
  const length = Array.from(value).length;
  if (length > 10_000) return 'is too long';
  if (field.minLength !== undefined && length < field.minLength)
    return `must have at least ${field.minLength} characters`;
  if (field.maxLength !== undefined && length > field.maxLength)
    return `must have at most ${field.maxLength} characters`;
  const choices = field.enum ?? field.oneOf?.map((choice) => choice.const);
  if (choices !== undefined && !choices.includes(value)) return `must be one of ${choices.join(', ')}`;
  if (field.pattern !== undefined && !new RegExp(field.pattern, 'u').test(value))
    return 'does not have the right form';
  if (field.format === 'email' && !/^[^\s@]+@[^\s@]+$/.test(value)) return 'must be an e-mail address';
  if (field.format === 'date' && !/^\d{4}-\d{2}-\d{2}$/.test(value)) return 'must be a date (YYYY-MM-DD)';
  if (field.format === 'date-time' && Number.isNaN(Date.parse(value)))
    return 'must be a date and time (ISO 8601)';
  return undefined;
}

function arrayProblem(field: Extract<FormField, { type: 'array' }>, value: unknown): string | undefined {
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
    return 'must be a list of choices';
  const choices = 'enum' in field.items ? field.items.enum : field.items.anyOf.map((choice) => choice.const);
  const foreign = value.find((item) => !choices.includes(item as string));
  if (foreign !== undefined) return `must only have ${choices.join(', ')}`;
  if (field.minItems !== undefined && value.length < field.minItems)
    return `must have at least ${field.minItems} choices`;
  if (field.maxItems !== undefined && value.length > field.maxItems)
    return `must have at most ${field.maxItems} choices`;
  return undefined;
}
