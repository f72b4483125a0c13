/** Members of parsed JSON, by path: `data.id`, `0.errorCode`. Pure; answers nothing for what is not there. */

/** The member at a path, whatever it is. */
export function memberAt(value: unknown, path: string): unknown {
  let current = value;
  for (const name of path.split('.')) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as Record<string, unknown>)[name];
  }
  return current;
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
