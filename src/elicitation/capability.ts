/** What a client says it can show (MCP, client/elicitation, "Capabilities"). Pure; odd types mean "cannot". */

/** Modes that a request declared. */
export interface ElicitationModes {
  readonly form: boolean;
  readonly url: boolean;
}

/** A client that can show nothing. */
export const NO_MODES: ElicitationModes = { form: false, url: false };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads `capabilities.elicitation`. An empty object means form mode only. */
export function elicitationModes(capabilities: unknown): ElicitationModes {
  if (!isObject(capabilities) || !isObject(capabilities['elicitation'])) return NO_MODES;
  const { form, url } = capabilities['elicitation'];
  return { form: isObject(form) || (!isObject(form) && !isObject(url)), url: isObject(url) };
}

/** Whether `capabilities.extensions` declares an extension. */
export function declaresExtension(capabilities: unknown, extension: string): boolean {
  if (!isObject(capabilities) || !isObject(capabilities['extensions'])) return false;
  return isObject(capabilities['extensions'][extension]);
}
