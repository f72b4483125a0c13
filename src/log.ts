/**
 * One structured line per event (pino). Redaction is by construction: callers pass an event name and plain facts; a
 * `Secret` prints as a mark, errors are reduced to name, reason and stack without their own properties (an OAuth
 * library's error may carry a rejected token answer), and a scrubber that knows the secrets in use has the last word.
 */
import { pino, type DestinationStream, type Level } from 'pino';
import { Refusal } from './errors.ts';

/** Replaces every secret in use within a text by a mark. */
export type Scrub = (text: string) => string;

/** Writes events. `facts` are flat: strings, numbers, booleans, `Secret`s (shown as a mark) and one `error`. */
export interface Log {
  debug(event: string, facts?: LogFacts): void;
  info(event: string, facts?: LogFacts): void;
  warn(event: string, facts?: LogFacts): void;
  error(event: string, facts?: LogFacts): void;
}

/** Facts of an event. */
export type LogFacts = Readonly<Record<string, unknown>>;

/**
 * Opens a log.
 *
 * @param options.level lowest level written; `silent` writes nothing.
 * @param options.scrub applied to each whole line.
 * @param options.stream where lines go; standard error by default, since standard output belongs to stdio transports.
 */
export function openLog(options: {
  level: Level | 'silent';
  scrub?: Scrub;
  stream?: DestinationStream;
}): Log {
  const stream = options.stream ?? pino.destination({ dest: 2, sync: true });
  const scrub = options.scrub ?? ((text: string) => text);
  const scrubbed: DestinationStream = { write: (line) => stream.write(scrub(line)) };
  const logger = pino({ level: options.level, base: null, serializers: { error: describeError } }, scrubbed);
  const at = (level: Level) => (event: string, facts?: LogFacts) => {
    logger[level]({ event, ...facts });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** A log that writes nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Reduces an error to what may be written: never its own properties, never a cause's body. */
export function describeError(value: unknown): Record<string, unknown> {
  if (!(value instanceof Error)) return { name: typeof value };
  const cause = value.cause === undefined ? {} : { cause: describeError(value.cause) };
  const code = 'code' in value && typeof value.code === 'string' ? { code: value.code } : {};
  const reason = value instanceof Refusal ? { reason: value.reason, facts: value.facts } : {};
  return { name: value.name, message: value.message, ...code, ...reason, stack: value.stack, ...cause };
}
