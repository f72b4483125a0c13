/** Members of parsed JSON, by path: `data.id`, `0.errorCode`. Pure; answers nothing for what is not there. */

/** The member at a path, whatever it is. A name may hold dots of its own: `@odata.nextLink`, `error..tag`. */
export function memberAt(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Object.hasOwn(value, path)) return (value as Record<string, unknown>)[path];
  const dot = path.indexOf('.');
  const name = path.slice(0, dot);
  if (dot <= 0 || !Object.hasOwn(value, name)) return undefined;
  return memberAt((value as Record<string, unknown>)[name], path.slice(dot + 1));
}

/** The member at a path as text: strings that are not empty, and numbers. */
export function textAt(value: unknown, path: string): string | undefined {
  const member = memberAt(value, path);
  if (typeof member === 'number' && Number.isFinite(member)) return String(member);
  return typeof member === 'string' && member !== '' ? member : undefined;
}

/** JSON, or undefined when the text is none. A byte order mark is no part of it. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return undefined;
  }
}
