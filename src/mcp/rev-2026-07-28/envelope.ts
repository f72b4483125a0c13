/**
 * What every request of this revision carries about itself (basic/index, "Per-request protocol fields"): version,
 * capabilities, and optionally the client's name and a trace. Odd types never crash and never count as declared. Pure.
 */
import type { Declared } from '../../engine/caller.ts';
import { declaresExtension, elicitationModes } from '../../elicitation/capability.ts';
import { clientName } from '../client-name.ts';
import { MODERN_VERSIONS, VERSION_KEY } from '../era.ts';
import { INVALID_PARAMS, isObject, type JsonObject, type WireError } from '../json-rpc.ts';

/** Identifier of the tasks extension. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo';

/** What a request says about itself. */
export interface Envelope {
  readonly version: string;
  readonly declared: Declared;
  /** W3C traceparent, where a valid one was sent. */
  readonly trace: string | undefined;
  readonly meta: JsonObject;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Reads the envelope; an error when a required field is missing or of another type. */
export function readEnvelope(params: JsonObject): Envelope | WireError {
  const meta = params['_meta'];
  if (!isObject(meta)) return missing('_meta');
  const version = meta[VERSION_KEY];
  if (typeof version !== 'string' || version === '') return missing(`_meta["${VERSION_KEY}"]`);
  const capabilities = meta[CAPABILITIES_KEY];
  if (!isObject(capabilities)) return missing(`_meta["${CAPABILITIES_KEY}"]`);
  const trace = meta['traceparent'];
  return {
    version,
    meta,
    trace: typeof trace === 'string' && TRACEPARENT.test(trace) ? trace : undefined,
    declared: {
      tasks: declaresExtension(capabilities, TASKS_EXTENSION),
      modes: elicitationModes(capabilities),
      clientName: clientName(meta[CLIENT_INFO_KEY]),
    },
  };
}

/** Whether what was read is an error. */
export function isWireError(value: Envelope | WireError): value is WireError {
  return 'status' in value;
}

/** The answer to a revision that is not served (basic/versioning, "Protocol Version Negotiation"). */
export function versionProblem({ version }: Envelope): WireError | undefined {
  if ((MODERN_VERSIONS as readonly string[]).includes(version)) return undefined;
  return {
    status: 400,
    code: -32022,
    message: 'Unsupported protocol version',
    data: { supported: [...MODERN_VERSIONS], requested: version },
  };
}

/**
 * The answer to a request that needs what its client has not declared.
 *
 * @param why what for, and what to do about it, where more is known than the names.
 */
export function missingCapability(
  requiredCapabilities: JsonObject,
  why = `Missing required client capability: ${namesOf(requiredCapabilities).join(', ')}`,
): WireError {
  return { status: 400, code: -32021, message: why, data: { requiredCapabilities } };
}

/** `elicitation.url` and the like. */
function namesOf(capabilities: JsonObject): string[] {
  return Object.entries(capabilities).flatMap(([name, parts]) =>
    Object.keys(parts as object).map((part) => `${name}.${part}`),
  );
}

/** The tasks extension is needed and was not declared on this request. */
export function missingTasks(): WireError {
  return missingCapability({ extensions: { [TASKS_EXTENSION]: {} } });
}

function missing(field: string): WireError {
  return { status: 400, code: INVALID_PARAMS, message: `params.${field}: is missing or of the wrong type` };
}
