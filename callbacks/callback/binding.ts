/** The cookie that ties an authorization response to the browser in which *Continue* was pressed (R12). */

/** What its name begins with. */
export const ATTEMPT_COOKIES = 'keyturn_attempt_';

/** As many as one link may start, and some for a second one. */
export const MOST_ATTEMPT_COOKIES = 32;

/** Its name: one a press, so that two tabs do not overwrite each other. */
export function attemptCookie(attemptId: string): string {
  return `${ATTEMPT_COOKIES}${attemptId}`;
}
