/**
 * Values of one connection in a profile's texts: `https://{shop}.example.com`, `{instance_url}/me`. A value
 * may be a label of a host or a whole origin, and can never turn an address into somebody else's. Pure.
 */
import { Refusal } from '../errors.ts';

type Values = Readonly<Record<string, string>>;

/**
 * The exact origin that a template names for a connection (R16).
 *
 * @throws Refusal `egress_forbidden` when a value is missing, or is not what may stand there.
 */
export function originOf(template: string, values: Values): string {
  const whole = /^\{(\w+)\}$/.exec(template)?.[1];
  const filled =
    whole === undefined
      ? template.replace(/\{(\w+)\}/g, (_, name: string) => {
          const value = values[name];
          // One or more labels, and nothing that ends the host: no slash, colon, at sign.
          if (value === undefined || !/^[a-z\d-]+(?:\.[a-z\d-]+)*$/i.test(value)) throw unknownOrigin();
          return value;
        })
      : values[whole];
  try {
    return new URL(filled ?? '').origin;
  } catch {
    throw unknownOrigin();
  }
}

/**
 * An address with the connection's values: at the beginning a whole origin, elsewhere a part that is escaped.
 *
 * @throws Refusal `egress_forbidden` when the origin at the beginning is not known.
 */
export function addressOf(template: string, values: Values): string {
  return template.replace(/\{(\w+)\}/g, (all, name: string, at: number) => {
    const value = values[name];
    if (at === 0) return originOf(`{${name}}`, values);
    // Braces that name nothing of this connection belong to the caller: JSON in a query, for one.
    return value === undefined ? all : encodeURIComponent(value);
  });
}

function unknownOrigin(): Refusal {
  return new Refusal('egress_forbidden', { facts: { why: 'the origin of this connection is not known' } });
}
