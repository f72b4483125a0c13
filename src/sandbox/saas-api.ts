/**
 * Paperboat's API: the records, and who one is. It answers bearer tokens as RFC 6750 has it, and never
 * repeats one: not in a body, not in a header, not in its log.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import type { Account } from './accounts.ts';
import { issuesPage, issuesRoute } from './github-issues.ts';
import { PAGE_SIZE, recordPage } from './records.ts';

/** Scopes of the API. */
export const RECORDS_SCOPE = 'records:read';
export const PROFILE_SCOPE = 'profile:read';

/** Something that went wrong with the next request, on purpose. */
export type ApiFault = 'api-unavailable' | 'api-rate-limited' | 'api-dropped';

export interface ApiCall {
  /** Path with its query. */
  readonly path: string;
  /** 0 for a connection that was cut without an answer. */
  readonly status: number;
  readonly atMs: number;
}

export interface ApiParts {
  readonly provider: () => Provider;
  readonly accounts: readonly Account[];
  readonly log: (call: ApiCall) => void;
  readonly takeFault: () => ApiFault | undefined;
  /** Whether the tokens of a grant have lost their permissions. */
  readonly isNarrowed: (grantId: string | undefined) => boolean;
  /** How many times all cursors have died. */
  readonly cursorAge: () => number;
  /** Called when a page of records is about to be sent. */
  readonly onPage: () => void;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | readonly unknown[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers a request below `/api/`. */
export async function answerApi(
  parts: ApiParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = request.url ?? '/';
  const fault = parts.takeFault();
  if (fault === 'api-dropped') {
    parts.log({ path, status: 0, atMs: Date.now() });
    response.destroy();
    return;
  }
  const { status, body, headers } = fault === undefined ? await answerOf(parts, request) : FAULTS[fault];
  parts.log({ path, status, atMs: Date.now() });
  response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers })
    .end(JSON.stringify(body));
}

const FAULTS: Record<Exclude<ApiFault, 'api-dropped'>, Answer> = {
  'api-unavailable': { status: 503, body: { error: 'unavailable' } },
  'api-rate-limited': { status: 429, body: { error: 'rate_limited' }, headers: { 'retry-after': '1' } },
};

async function answerOf(
  { provider, accounts, onPage, isNarrowed, cursorAge }: ApiParts,
  request: IncomingMessage,
): Promise<Answer> {
  const url = new URL(request.url ?? '/', 'http://api');
  const issues = issuesRoute(url.pathname);
  const route = issues
    ? RECORDS_SCOPE
    : { '/api/records': RECORDS_SCOPE, '/api/me': PROFILE_SCOPE }[url.pathname];
  if (route === undefined) return { status: 404, body: { error: 'not_found' } };
  if (request.method !== 'GET')
    return { status: 405, body: { error: 'method_not_allowed' }, headers: { allow: 'GET' } };

  const given = /^Bearer ([\w\-.~+/]+=*)$/i.exec(request.headers.authorization ?? '')?.[1];
  // Without credentials there is no error to name (RFC 6750, section 3.1).
  if (given === undefined) return { status: 401, body: { error: 'unauthorized' }, headers: challenge({}) };
  const token = await provider().AccessToken.find(given);
  const account = accounts.find(({ id }) => id === token?.accountId);
  if (token === undefined || account === undefined) {
    const error = 'invalid_token';
    const description = 'The access token is unknown, has expired or was revoked';
    return { status: 401, body: { error }, headers: challenge({ error, error_description: description }) };
  }
  if (!token.scopes.has(route) || isNarrowed(token.grantId)) {
    const error = 'insufficient_scope';
    return { status: 403, body: { error, scope: route }, headers: challenge({ error, scope: route }) };
  }
  if (url.pathname === '/api/me') {
    return { status: 200, body: { id: account.id, name: account.name, email: account.email } };
  }

  if (issues) {
    const page = await issuesPage(url, `http://${request.headers.host ?? ''}`);
    if (page.status === 200) onPage();
    return page;
  }

  const limit = Number(url.searchParams.get('limit') ?? PAGE_SIZE);
  if (!Number.isInteger(limit) || limit < 1 || limit > PAGE_SIZE) {
    return {
      status: 400,
      body: { error: 'invalid_limit', message: `limit: a whole number from 1 to ${PAGE_SIZE}` },
    };
  }
  const page = recordPage(url.searchParams.get('cursor'), limit, cursorAge());
  if (page === undefined)
    return { status: 400, body: { error: 'invalid_cursor', message: 'cursor: unknown' } };
  onPage();
  return { status: 200, body: { ...page } };
}

function challenge(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const list = Object.entries({ realm: 'paperboat', ...parameters }).map(
    ([name, value]) => `${name}="${value}"`,
  );
  return { 'www-authenticate': `Bearer ${list.join(', ')}` };
}
