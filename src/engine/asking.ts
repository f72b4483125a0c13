/**
 * How a want becomes a question: its name, its words, its link. The words are ours and name the server and the
 * provider; nothing of a provider or a model gets into them.
 */
import { randomBytes } from 'node:crypto';
import { modeOf } from '../elicitation/kind.ts';
import { hashHandle, linkHandle } from '../vault/link-handle.ts';
import type { Keyring } from '../vault/keyring.ts';
import type { Link, Need, Outcome, Task } from '../store/records.ts';
import { refusalOutcome } from '../store/waits.ts';
import type { JobDefinition } from './define.ts';
import type { EngineSettings } from './settings.ts';
import type { Links } from './tasks.ts';
import type { Want } from './unwind.ts';

/** What the operator of the server can do for clients that show no links (D9). */
const OTHERWISE =
  ', or ask the operator of this server to allow links as text for this one (delivery.textLink)';

/** How questions are made. */
export type Asking = ReturnType<typeof openAsking>;

/** Questions and links: `publicUrl` has no trailing slash. */
export function openAsking(options: {
  keyring: Keyring;
  publicUrl: string;
  serverName: string;
  settings: EngineSettings;
  providerName: (provider: string) => string;
  /** Whether links of a task may travel in another way than URL mode (D9). */
  deliversOtherwise: (task: Task) => boolean;
}) {
  const { keyring, publicUrl, serverName, settings } = options;

  /** A fresh question id with what the ledger keeps of its link. */
  async function newLink(): Promise<{ id: string; link: Link }> {
    const id = randomBytes(16).toString('base64url');
    const { handle, kid } = await linkHandle(keyring, id);
    return { id, link: { handleHash: hashHandle(handle), kid } };
  }

  const links: Links = {
    async urlFor(elicitationId, kid) {
      const { handle } = await linkHandle(keyring, elicitationId, kid);
      return `${publicUrl}/connect/${handle}`;
    },
  };

  function message(title: string, want: Exclude<Want, { kind: 'form' }>, waitMs: number): string {
    const minutes = Math.max(1, Math.round(waitMs / 60_000));
    const name = options.providerName(want.provider);
    const act = want.kind === 'credential' ? 'enter your key for' : 'sign in at';
    return (
      `${serverName} needs you to ${act} ${name} so that "${title}" can go on. ` +
      `The page asks who you are first, so the link is of use to nobody else. It works for ${minutes} minutes.`
    );
  }

  /** What a person would have to do, for whoever reads why they were not asked. */
  function actsOf(wants: readonly Want[]): string {
    const acts = wants.map((want) => {
      if (want.kind === 'form') return 'answer a question';
      const name = options.providerName(want.provider);
      return want.kind === 'credential' ? `enter a key for ${name}` : `sign in at ${name}`;
    });
    return `a person to ${[...new Set(acts)].join(' and to ')}`;
  }

  return {
    links,
    newLink,

    /** Why a task may not ask for these wants, if so: it ends instead, with advice. */
    refusalOf(
      definition: JobDefinition,
      task: Task,
      wants: readonly Want[],
    ): { outcome: Outcome; statusMessage: string } | undefined {
      const names = wants.map((want) => (want.kind === 'form' ? want.name : want.provider));
      const needs = `"${definition.title ?? definition.name}" needs ${actsOf(wants)}`;
      if (task.interaction === 'never') {
        return {
          outcome: refusalOutcome('interaction_forbidden', { needs: names }),
          statusMessage: `${needs}, and was started with the rule never to ask one. Start it without that rule, or sign in first.`,
        };
      }
      const unshown = wants.filter((want) => {
        const mode = modeOf(want.kind);
        return !task.modes[mode] && !(mode === 'url' && options.deliversOtherwise(task));
      });
      if (unshown.length === 0) return undefined;
      const modes = [...new Set(unshown.map((want) => modeOf(want.kind)))];
      return {
        outcome: refusalOutcome('elicitation_unsupported', {
          needs: names,
          requiredCapabilities: { elicitation: Object.fromEntries(modes.map((mode) => [mode, {}])) },
        }),
        statusMessage:
          `${needs}, and this client cannot ask one: it has not declared MCP elicitation (${modes.join(', ')}). ` +
          `Use a client that does${modes.includes('url') ? OTHERWISE : ''}.`,
      };
    },

    /** The questions as the ledger keeps them. */
    write(definition: JobDefinition, wants: readonly Want[]): Promise<Need[]> {
      const title = definition.title ?? definition.name;
      const waitMs = definition.waitMs ?? settings.waitMs;
      return Promise.all(
        wants.map(async (want): Promise<Need> => {
          if (want.kind === 'form') {
            return {
              id: randomBytes(16).toString('base64url'),
              name: want.name,
              kind: 'form',
              provider: null,
              connectionId: null,
              scopes: [],
              judgedGeneration: null,
              schema: want.schema,
              message: want.message,
              forceConsent: false,
              link: null,
            };
          }
          return {
            ...(await newLink()),
            name: want.account === 'default' ? want.provider : `${want.provider}:${want.account}`,
            kind: want.kind,
            provider: want.provider,
            connectionId: want.connectionId,
            scopes: want.scopes,
            judgedGeneration: want.judgedGeneration,
            schema: null,
            message: message(title, want, waitMs),
            forceConsent: want.forceConsent,
          };
        }),
      );
    },

    /** What a client that shows nothing else should say. */
    statusMessage(wants: readonly Want[]): string {
      const providers = wants.flatMap((want) =>
        want.kind === 'form' ? [] : [options.providerName(want.provider)],
      );
      if (providers.length === 0) return 'Waiting for an answer. Show the open question to the person.';
      const names = [...new Set(providers)].join(' and ');
      return `Waiting for a sign-in at ${names}. Show the link of the open question to the person; a client without URL elicitation cannot continue.`;
    },
  };
}
