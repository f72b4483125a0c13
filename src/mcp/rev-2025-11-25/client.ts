/**
 * What a client says about itself in `initialize`, reduced to what decides later answers. Everything else that it
 * says is dropped, so that a session is small enough to travel in its own id. Pure; odd types mean "cannot".
 */
import { elicitationModes, type ElicitationModes } from '../../elicitation/capability.ts';
import { clientName } from '../client-name.ts';
import { isObject } from '../json-rpc.ts';
import { drawnModes } from './host-quirks.ts';
import { negotiate, REVISIONS, type Revision } from './revisions.ts';

/** A client as it introduced itself. */
export interface Client {
  readonly revision: Revision;
  /** Self-reported name: decoration, and the key of the operator's delivery rules. */
  readonly name: string | null;
  /** What it can show: as declared, within what its revision knows and what is known of its host. */
  readonly modes: ElicitationModes;
  /** Whether it declared tasks of its own: a sign that it knows how to drive ours. */
  readonly tasks: boolean;
}

/** Reads the parameters of `initialize`. */
export function readClient(params: unknown): Client {
  const said = isObject(params) ? params : {};
  const revision = negotiate(said['protocolVersion']);
  const known = REVISIONS[revision];
  const declared = elicitationModes(said['capabilities']);
  const capabilities = isObject(said['capabilities']) ? said['capabilities'] : {};
  const name = clientName(said['clientInfo']);
  return {
    revision,
    name,
    modes: drawnModes(name, {
      form: declared.form && known.elicitation.form,
      url: declared.url && known.elicitation.url,
    }),
    tasks: known.tasks && isObject(capabilities['tasks']),
  };
}

/** The parameters of an `initialize` that says the same, for a node that has not heard the first one. */
export function introduction(client: Client): Record<string, unknown> {
  const { form, url } = client.modes;
  return {
    protocolVersion: client.revision,
    clientInfo: { name: client.name ?? 'unnamed', version: '0' },
    capabilities:
      form || url ? { elicitation: { ...(form ? { form: {} } : {}), ...(url ? { url: {} } : {}) } } : {},
  };
}
