/** Scopes are sets (D10, RFC 6749 section 3.3): any separator, any order. Pure. */

/** Reads a scope text with any of the separators in use (space, comma). Empty means none. */
export function parseScopes(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((scope) => scope !== ''))];
}

/** The scopes of `needed` that `granted` lacks, in the order of `needed`. */
export function missingScopes(needed: readonly string[], granted: readonly string[]): string[] {
  const have = new Set(granted);
  return needed.filter((scope) => !have.has(scope));
}

/** Both sets, without doubles, in a stable order. */
export function unionScopes(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])].toSorted();
}

/** Whether `granted` has everything of `needed`. */
export function coversScopes(granted: readonly string[], needed: readonly string[]): boolean {
  return missingScopes(needed, granted).length === 0;
}
