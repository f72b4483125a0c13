/**
 * What a person does at an authorization server of the sandbox: choose an account, agree or refuse. GET
 * shows, POST acts. The library decides when somebody has to be asked; this file asks and hands the answer
 * back.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { InteractionModel, Provider } from 'oidc-provider';
import type { Account } from './accounts.ts';
import { choosePersonPage, consentPage, PAGE_HEADERS, troublePage, type Brand } from './pages.ts';

/** Where interactions live, without the id. */
export const INTERACTIONS = '/interaction/';

/** Longest form that is read, in bytes. */
const MOST_BYTES = 4_096;

export interface InteractionParts {
  readonly provider: Provider;
  readonly brand: Brand;
  readonly accounts: readonly Account[];
}

/** Answers a request below `/interaction/`. */
export async function interact(
  parts: InteractionParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let interaction: InteractionModel;
  try {
    interaction = await parts.provider.interactionDetails(request, response);
  } catch {
    // No cookie, or the sign-in was finished or has run out.
    return send(
      response,
      400,
      troublePage(parts.brand, 'session_not_found', 'This sign-in is over. Start again.'),
    );
  }
  if (request.method === 'GET') return send(response, 200, await ask(parts, interaction));
  if (request.method !== 'POST')
    return send(response, 405, troublePage(parts.brand, 'invalid_request', 'Only forms.'));
  const form = await readForm(request);
  if (form === undefined) {
    return send(response, 413, troublePage(parts.brand, 'invalid_request', 'The form is too large.'));
  }
  const account = parts.accounts.find(({ id }) => id === form.get('person'));
  if (isConsent(interaction)) {
    if (form.get('action') === 'allow') return allow(parts, interaction, request, response);
    if (form.get('action') === 'deny') return deny(parts, request, response);
  } else if (account !== undefined) {
    return signIn(parts, interaction, account, request, response);
  }
  // Nothing that this page asks: shown again.
  return send(response, 400, await ask(parts, interaction));
}

function isConsent(interaction: InteractionModel): boolean {
  return interaction.prompt.name === 'consent';
}

async function ask(
  { provider, brand, accounts }: InteractionParts,
  interaction: InteractionModel,
): Promise<string> {
  const path = `${INTERACTIONS}${interaction.uid}`;
  const clientId = textOf(interaction.params['client_id']);
  const client = await provider.Client.find(clientId);
  const clientName = client?.clientName ?? clientId;
  if (!isConsent(interaction)) return choosePersonPage(brand, path, accounts, clientName);
  const person = interaction.session?.accountId ?? '';
  const scopes = textOf(interaction.params['scope']).split(' ').filter(Boolean);
  return consentPage(brand, path, person, clientName, scopes);
}

async function signIn(
  { provider }: InteractionParts,
  interaction: InteractionModel,
  account: Account,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const result = { [interaction.prompt.name]: {}, login: { accountId: account.id } };
  const next = await provider.interactionResult(request, response, result, { mergeWithLastSubmission: true });
  // Somebody else was signed in here: this browser becomes theirs, and what the other one agreed to stays
  // behind. Left to itself, the library would end the first session with a page that needs script.
  const uid = interaction.session?.uid;
  const session = uid === undefined ? undefined : await provider.Session.findByUid(uid);
  if (session?.accountId !== undefined && session.accountId !== account.id) {
    session.accountId = account.id;
    session.authorizations = undefined;
    await session.persist();
  }
  moveOn(response, next);
}

async function allow(
  { provider }: InteractionParts,
  interaction: InteractionModel,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params, prompt, session } = interaction;
  const earlier =
    interaction.grantId === undefined ? undefined : await provider.Grant.find(interaction.grantId);
  const grant =
    earlier ??
    new provider.Grant({ accountId: session?.accountId ?? '', clientId: textOf(params['client_id']) });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const result = { consent: { grantId: await grant.save() } };
  moveOn(
    response,
    await provider.interactionResult(request, response, result, { mergeWithLastSubmission: true }),
  );
}

async function deny(
  { provider }: InteractionParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const result = { error: 'access_denied', error_description: 'the person said no' };
  moveOn(
    response,
    await provider.interactionResult(request, response, result, { mergeWithLastSubmission: false }),
  );
}

function moveOn(response: ServerResponse, location: string): void {
  response.writeHead(303, { location, 'cache-control': 'no-store' }).end();
}

function send(response: ServerResponse, status: number, page: string): void {
  response.writeHead(status, PAGE_HEADERS).end(page);
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
