/**
 * A Keyturn with the sandbox around it, on loopback: for `serve --sandbox`, for the demo and for tests. The issuer, the
 * SaaS and Keyturn are three sites, as in the field.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DestinationStream } from 'pino';
import { openKeyturn, type Keyturn, type KeyturnOptions } from './app.ts';
import { readConfig, type ConfigInput } from './config.ts';
import type { AnyTool } from './engine/define.ts';
import { defineGithubIssuesIngest } from './ingest/github-issues.ts';
import { definePagedIngest } from './ingest/paged-source.ts';
import { openSandbox, type Sandbox } from './sandbox/sandbox.ts';
import { SecretsInUse } from './secrets-in-use.ts';
import type { Json } from './store/records.ts';
import { generateKey } from './vault/keyring.ts';

export interface WorldOptions {
  /** Port of Keyturn; a free one by default. */
  readonly port?: number;
  /** Where people and clients find it, when something stands in front; `http://localhost:<port>` by default. */
  readonly publicUrl?: string;
  /** Folder of the ledger; a temporary one, removed at the end, by default. */
  readonly folder?: string;
  readonly logStream?: DestinationStream;
  /** Laid over the configuration. */
  readonly config?: Partial<ConfigInput>;
  readonly tools?: readonly AnyTool[];
  /** Tools that need to know where Paperboat's records are. */
  readonly moreTools?: (recordsUrl: string) => readonly AnyTool[];
  readonly accessTokenSeconds?: number;
  /** More environment, for secrets that `config` names. */
  readonly env?: Readonly<Record<string, string>>;
  readonly ports?: { readonly issuer?: number; readonly saas?: number };
  /** Stands between the ledger and its database, for every node. */
  readonly wrapStore?: KeyturnOptions['wrapStore'];
}

export interface World {
  readonly sandbox: Sandbox;
  readonly publicUrl: string;
  readonly mcpUrl: string;
  /** The Keyturn that runs now; another one after `restart`. */
  readonly keyturn: Keyturn;
  /** Every secret that the run has used so far, to search for. */
  secrets(): string[];
  /** Opens one more node on the same ledger, not listening; the caller stops it. */
  openNode(): Promise<Keyturn>;
  /** Stops Keyturn and starts a new one on the same ledger, vault and port. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** The records of Paperboat as a tool. */
export function importRecords(recordsUrl: string): AnyTool {
  return definePagedIngest({
    name: 'import_records',
    title: 'Import records from Paperboat',
    description: 'Imports all records of your Paperboat account, page by page.',
    provider: 'paperboat',
    scopes: ['records:read'],
    url: recordsUrl,
    collection: 'paperboat-records',
    accounts: 'several',
    recordsOf: (page) => {
      const records = (page as { records: { id: string }[] }).records;
      return records.map((body) => ({ id: body.id, body: body as unknown as Json }));
    },
    totalOf: () => 1_000,
  });
}

/**
 * A free port below those that systems give to outgoing connections: one of those could take it between a stop and the
 * start that follows.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => {
      server.close(resolve);
    });
    return port;
  }
}

/** Configuration of a Keyturn in a sandbox, and the environment that holds its secrets. */
export function worldConfig(place: {
  sandbox: Sandbox;
  publicUrl: string;
  port: number;
  folder: string;
  vaultKeys: string;
  tools?: readonly AnyTool[];
}): { config: ConfigInput; env: Record<string, string> } {
  const { sandbox, publicUrl, port, folder } = place;
  const { issuer, saas, providerSettings: paperboat } = sandbox;
  const mcpUrl = `${publicUrl}/mcp`;
  const env = {
    KEYTURN_VAULT_KEYS: place.vaultKeys,
    PAPERBOAT_SECRET: paperboat.clientSecret.reveal(),
    ISSUER_SECRET: issuer.clientSecret.reveal(),
  };
  const config: ConfigInput = {
    name: 'Keyturn Sandbox',
    publicUrl,
    listen: { host: '127.0.0.1', port },
    issuer: {
      url: issuer.issuer,
      audience: mcpUrl,
      scopes: ['mcp:tools'],
      client: { id: issuer.clientId, secret: { env: 'ISSUER_SECRET' } },
    },
    ledger: { file: join(folder, 'keyturn.sqlite') },
    vault: { keys: { env: 'KEYTURN_VAULT_KEYS' } },
    providers: {
      paperboat: {
        clientId: paperboat.clientId,
        clientSecret: { env: 'PAPERBOAT_SECRET' },
        profile: {
          displayName: paperboat.displayName,
          issuer: paperboat.issuer,
          authorizationEndpoint: paperboat.authorizationEndpoint,
          tokenEndpoint: paperboat.tokenEndpoint,
          clientAuthentication: paperboat.clientAuthentication,
          responseIssuer: 'required',
          // Its identity endpoint wants it: without an account there is nothing to bind a later sign-in to.
          alwaysScopes: ['profile:read'],
          scopeWords: {
            'records:read': 'Read your records',
            'profile:read': 'Read your name and e-mail address',
          },
          consentParameters: { prompt: 'consent' },
          revocation: { endpoint: paperboat.revocationEndpoint, ends: 'grant' },
          refresh: { rotates: true },
          identity: { url: paperboat.identity.url, subject: 'id', label: 'email' },
          api: { origins: [...paperboat.apiOrigins] },
        },
      },
    },
    tools: [
      importRecords(paperboat.recordsUrl),
      defineGithubIssuesIngest({
        provider: 'paperboat',
        repository: 'paperboat/harbour',
        apiUrl: `${saas.origin}/api`,
        scopes: ['records:read'],
        collection: 'issues',
      }),
      ...(place.tools ?? []),
    ],
    allowPrivate: [new URL(issuer.issuer).origin, saas.origin],
    log: { level: 'info' },
    // One machine plays everybody here.
    limits: { requestsPerMinute: 10_000_000, pagesPerMinute: 100_000 },
  };
  return { config, env };
}

/** Opens the world. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const port = options.port ?? (await freePort());
  const publicUrl = options.publicUrl ?? `http://localhost:${port}`;
  const mcpUrl = `${publicUrl}/mcp`;
  const own = options.folder === undefined;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'keyturn-'));
  const sandbox = await openSandbox({
    mcpResource: mcpUrl,
    keyturnPublicUrl: publicUrl,
    ...(options.ports === undefined ? {} : { ports: options.ports }),
    ...(options.accessTokenSeconds === undefined ? {} : { accessTokenSeconds: options.accessTokenSeconds }),
  });
  const { recordsUrl } = sandbox.providerSettings;
  const made = worldConfig({
    sandbox,
    publicUrl,
    port,
    folder,
    vaultKeys: generateKey().entry.reveal(),
    tools: [...(options.tools ?? []), ...(options.moreTools?.(recordsUrl) ?? [])],
  });
  const env: Record<string, string> = { ...made.env, ...options.env };
  const config = readConfig({ ...made.config, ...options.config });
  const secrets = new SecretsInUse();

  function build(): Promise<Keyturn> {
    return openKeyturn(config, {
      env,
      secrets,
      ...(options.logStream === undefined ? {} : { logStream: options.logStream }),
      ...(options.wrapStore === undefined ? {} : { wrapStore: options.wrapStore }),
    });
  }

  async function start(): Promise<Keyturn> {
    const keyturn = await build();
    await keyturn.app.listen({ host: '127.0.0.1', port });
    keyturn.start();
    return keyturn;
  }

  let keyturn = await start();
  return {
    sandbox,
    publicUrl,
    mcpUrl,
    get keyturn() {
      return keyturn;
    },
    async openNode() {
      const node = await build();
      node.start();
      return node;
    },
    secrets: () => [
      ...secrets.texts(),
      ...Object.values(env).flatMap((text) => text.split(':').at(-1) ?? []),
    ],
    async restart() {
      await keyturn.stop();
      keyturn = await start();
    },
    async close() {
      await keyturn.stop();
      await sandbox.close();
      if (own) rmSync(folder, { recursive: true, force: true });
    },
  };
}
