/** The shapes of the fake provider's answers, right and wrong. Pure. */
import type { FastifyRequest } from 'fastify';
import type { Instead, TokenReply } from './fake-provider-switches.ts';

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Error code of an OAuth answer. */
  readonly error?: string;
}

/** Cuts the connection instead of answering. */
export const CUT = Symbol('cut');

export function json(status: number, body: Readonly<Record<string, unknown>>): Answer {
  return {
    status,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  };
}

export function oauthError(status: number, error: string): Answer {
  return { ...json(status, { error, error_description: `fake: ${error}` }), error };
}

export function replaced({ status, body, headers = {} }: Instead): Answer {
  if (typeof body === 'string') return { status, body, headers: { 'content-type': 'text/html', ...headers } };
  const sent = json(status, body);
  const { error } = body;
  return {
    ...sent,
    headers: { ...sent.headers, ...headers },
    ...(typeof error === 'string' ? { error } : {}),
  };
}

export function wrapped(
  reply: Extract<TokenReply, { kind: 'tokens' }>,
  body: Readonly<Record<string, unknown>>,
): Answer {
  const plain = json(reply.status, body);
  switch (reply.as) {
    case 'json':
      return plain;
    case 'json-with-bom':
      return { ...plain, body: `\uFEFF${plain.body}` };
    case 'json-as-text':
      return { ...plain, headers: { ...plain.headers, 'content-type': 'text/plain' } };
    case 'form': {
      const entries = Object.entries(body).map(([name, value]): [string, string] => [
        name,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]);
      const headers = { ...plain.headers, 'content-type': 'application/x-www-form-urlencoded' };
      return { ...plain, headers, body: new URLSearchParams(entries).toString() };
    }
  }
}

/** `client_secret_basic` or `client_secret_post` (RFC 6749, section 2.3.1). */
export function isClient(
  request: FastifyRequest,
  form: Readonly<Record<string, string | undefined>>,
  client: { readonly id: string; readonly secret: string },
): boolean {
  const basic = /^Basic (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (basic === undefined) return form['client_id'] === client.id && form['client_secret'] === client.secret;
  const [id = '', password = ''] = Buffer.from(basic, 'base64').toString('utf8').split(':');
  const decode = (text: string) => decodeURIComponent(text.replaceAll('+', ' '));
  return decode(id) === client.id && decode(password) === client.secret;
}
