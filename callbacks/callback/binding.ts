/** The cookie that ties an authorization response to the browser in which *Continue* was pressed (R12). */

/** Its name: one a press, so that two tabs do not overwrite each other. */
export function attemptCookie(attemptId: string): string {
  return `keyturn_attempt_${attemptId}`;
}
