/** The table of contents: builds every part, mounts every route. Nothing else does. */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { importPKCS8 } from 'jose';
import Fastify, { type FastifyInstance } from 'fastify';
import type { DestinationStream } from 'pino';
import { mountPages } from '../callbacks/routes.ts';
import { openIssuerClient } from '../callbacks/sign-in/issuer-client.ts';
import { readSecret, type Config, type SecretSource } from './config.ts';
import { Refusal } from './errors.ts';
import { withAccounts } from './engine/accounts.ts';
import type { AnyTool } from './engine/define.ts';
import type { Caller } from './engine/caller.ts';
import { openEngine, type Engine } from './engine/engine.ts';
import { providerRegistry } from './engine/providers.ts';
import { DEFAULT_SETTINGS } from './engine/settings.ts';
import { callerLimit } from './http/caller-limit.ts';
import { mountHealth } from './http/health.ts';
import { openMetrics } from './http/metrics.ts';
import { openLog, type Log } from './log.ts';
import { openBearer, type Authenticate } from './mcp/bearer.ts';
import { openCatalogue } from './mcp/catalogue.ts';
import { mountMcp } from './mcp/mount.ts';
import type { LegacyOptions } from './mcp/rev-2025-11-25/parts.ts';
import { openFace2026 } from './mcp/rev-2026-07-28/face.ts';
import { stateSeal } from './mcp/rev-2026-07-28/request-state.ts';
import { serveStdio, type StdioServer } from './mcp/stdio.ts';
import { openLegacyFace } from './mcp/rev-2025-11-25/face.ts';
import { openProvider } from './provider/client.ts';
import { openEgress } from './provider/egress.ts';
import { Secret } from './secret.ts';
import { SecretsInUse } from './secrets-in-use.ts';
import { openLedger, type Ledger } from './store/ledger.ts';
import { openPostgres } from './store/postgres.ts';
import { openSqlite } from './store/sqlite.ts';
import type { SqlEngine } from './store/sql.ts';
import { keysFromEnvironment, keysFromFile } from './vault/key-provider.ts';
import type { Keyring } from './vault/keyring.ts';
import { openVault, type Vault } from './vault/vault.ts';

/** A Keyturn that is built and not yet listening. */
export interface Keyturn {
  readonly app: FastifyInstance;
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly log: Log;
  /** Ids of the configured vault keys, the current one first. */
  readonly kids: readonly string[];
  /** Says who calls the MCP endpoint. */
  readonly authenticate: Authenticate;
  /** Serves one local person over standard input and output as well; the pages stay where they are. */
  serveStdio(caller: Caller): Promise<StdioServer>;
  /** Starts the work: dispatch and sweeps. */
  start(): void;
  /**
   * Replaces the tools and tells clients that listen. Tasks whose job is gone end with advice.
   *
   * @throws Refusal `configuration_invalid`; then nothing changes.
   */
  replaceTools(next: readonly AnyTool[]): void;
  /** Drains and stops everything, in the order that loses nothing. */
  stop(): Promise<void>;
}

/** What a test or an embedder may replace. */
export interface KeyturnOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Where log lines go; standard error by default. */
  readonly logStream?: DestinationStream;
  readonly wallMs?: () => number;
  readonly monotonicMs?: () => number;
  /** Stands between the ledger and its database: tests cut the power here. */
  readonly wrapStore?: (engine: SqlEngine) => SqlEngine;
  /** Where the secrets in use are kept: several servers of one process may share a set. */
  readonly secrets?: SecretsInUse;
  /**
   * Says who calls, in place of access tokens: for embedding in a server that has authenticated its callers already.
   * Danger: whoever it names is believed.
   */
  readonly authenticate?: Authenticate;
}

/** Fastify options that every Keyturn wants. Addresses of trusted proxies serve rate limits only (R29). */
function fastify(config: Config): FastifyInstance {
  const prefix = new URL(config.publicUrl).pathname.replace(/\/$/, '');
  return Fastify({
    // A proxy may keep the path prefix of the public URL or take it away: either way the same routes are found.
    rewriteUrl: ({ url = '/' }) =>
      prefix !== '' && url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url,
    logger: false,
    trustProxy: config.trustedProxies.length === 0 ? false : config.trustedProxies,
    bodyLimit: 1_048_576,
    routerOptions: { maxParamLength: 256, ignoreTrailingSlash: false },
    requestTimeout: 60_000,
    forceCloseConnections: 'idle',
  });
}

function openStore(
  config: Config,
  options: KeyturnOptions,
  env: NodeJS.ProcessEnv,
  secrets: SecretsInUse,
): Promise<SqlEngine> {
  if ('file' in config.ledger) {
    mkdirSync(dirname(config.ledger.file), { recursive: true, mode: 0o700 });
    return openSqlite({
      file: config.ledger.file,
      ...(options.wallMs === undefined ? {} : { wallMs: options.wallMs }),
      ...(options.monotonicMs === undefined ? {} : { monotonicMs: options.monotonicMs }),
    });
  }
  const connectionString = readSecret(config.ledger.postgres, 'ledger.postgres', env);
  secrets.add(connectionString);
  return openPostgres({ connectionString });
}

async function openKeys(source: SecretSource, env: NodeJS.ProcessEnv): Promise<Keyring> {
  return ('env' in source ? keysFromEnvironment(env, source.env) : keysFromFile(source.file)).load();
}

/** Wrong or missing keys, or a vault of another backup, stop the start (R23). */
async function proveVault(ledger: Ledger, vault: Vault): Promise<void> {
  await vault.proveKeys(await ledger.referencedKids());
  const epoch = Number((await ledger.readMeta('epoch')) ?? '1');
  const found = await vault.epoch();
  if (found === undefined) {
    await vault.setEpoch(epoch);
    await ledger.writeMeta('epoch', String(epoch));
    return;
  }
  if (found !== epoch) {
    throw new Refusal('epoch_mismatch', { facts: { ledger: epoch, vault: found } });
  }
}

/**
 * Builds a Keyturn.
 *
 * @throws Refusal `configuration_invalid`, `vault_key_missing`, `epoch_mismatch`, `store_unavailable`, `store_corrupt`,
 *   `store_newer`: a start that could not be trusted does not happen.
 */
export async function openKeyturn(config: Config, options: KeyturnOptions = {}): Promise<Keyturn> {
  const env = options.env ?? process.env;
  const wallMs = options.wallMs ?? (() => Date.now());
  const nowMs = options.monotonicMs ?? (() => performance.now());
  const publicUrl = config.publicUrl.replace(/\/$/, '');
  const mcpUrl = `${publicUrl}/mcp`;

  const secrets = options.secrets ?? new SecretsInUse();
  const log = openLog({
    level: config.log.level,
    scrub: (line) => secrets.scrubText(line),
    ...(options.logStream === undefined ? {} : { stream: options.logStream }),
  });
  const keyring = await openKeys(config.vault.keys, env);
  const ledger = openLedger(
    (options.wrapStore ?? ((engine) => engine))(await openStore(config, options, env, secrets)),
  );
  const vault = openVault({ keyring, table: ledger.vaultTable });
  await proveVault(ledger, vault);
  const metrics = openMetrics();

  const egress = openEgress({
    allowPrivate: config.allowPrivate,
    timeoutMs: 30_000,
    maxBodyBytes: 32 * 1_048_576,
  });
  const keep = (source: SecretSource | undefined, setting: string): Secret | null => {
    if (source === undefined) return null;
    const value = readSecret(source, setting, env);
    secrets.add(value);
    return value;
  };
  const providers = new Map(
    await Promise.all(
      Object.entries(config.providers).map(async ([id, one]) => {
        const key = keep(one.clientKey, `providers.${id}.clientKey`);
        const registration = {
          id,
          profile: one.profile,
          clientId: one.clientId ?? '',
          clientSecret: keep(one.clientSecret, `providers.${id}.clientSecret`),
          clientKey: key === null ? null : await importPKCS8(key.reveal(), 'ES256'),
        };
        return [
          id,
          openProvider(registration, { egress, wallMs, redirectUri: `${publicUrl}/callback/${id}` }),
        ] as const;
      }),
    ),
  );
  const registry = providerRegistry(providers);
  const complete = (all: readonly AnyTool[]): AnyTool[] =>
    all.map((tool) => withAccounts(tool, { ledger, providers: registry }));
  const offered = complete(config.tools);
  const tools = new Map(offered.map((tool) => [tool.name, tool]));
  const { textLink } = config.delivery;

  const engine = openEngine({
    ledger,
    vault,
    keyring,
    providers: registry,
    egress,
    tools,
    secrets,
    settings: {
      ...DEFAULT_SETTINGS,
      ...config.timing,
      ...(config.connections as { maxIdleMs?: number; maxAgeMs?: number }),
      waitMs: config.waitMs,
      workers: config.limits.workers,
      runningPerOwner: config.limits.runningPerOwner,
      holder: `node-${randomBytes(6).toString('hex')}`,
    },
    taskSettings: {
      openPerOwner: config.limits.openPerOwner,
      queueDepth: config.limits.queueDepth,
      defaultTtlMs: config.defaultTtlMs,
      maxTtlMs: config.maxTtlMs,
    },
    log,
    meter: metrics.meter,
    publicUrl,
    serverName: config.name,
    deliversOtherwise: (task) =>
      typeof textLink === 'boolean' ? textLink : textLink.includes(task.clientName ?? ''),
    wallMs,
    nowMs,
  });

  const app = fastify(config);
  let draining = false;
  mountHealth(app, { ledger, draining: () => draining });
  metrics.mount(app, ledger);
  await app.register(async (scope) => {
    await mountPages(scope, {
      engine,
      ledger,
      keyring,
      providers: registry,
      tools,
      issuer: openIssuerClient({
        issuer: config.issuer.url,
        clientId: config.issuer.client.id,
        clientSecret: keep(config.issuer.client.secret, 'issuer.client.secret'),
        subjectClaim: config.issuer.subjectClaim,
        redirectUri: `${publicUrl}/sign-in/return`,
        scopes: config.issuer.signInScopes,
        fetch: (url, init) => egress.fetch(url, init),
      }),
      site: {
        serverName: config.name,
        host: new URL(publicUrl).host,
        homePath: `${new URL(publicUrl).pathname.replace(/\/$/, '')}/`,
        connectionsPath: `${new URL(publicUrl).pathname.replace(/\/$/, '')}/connections`,
      },
      publicUrl,
      mcpUrl,
      pagesPerMinute: config.limits.pagesPerMinute,
      log,
      meter: metrics.meter,
      wallMs,
    });
  });

  const scrub = (text: string): string => secrets.scrubText(text);
  const catalogue = openCatalogue(offered);
  const info = { name: config.name, version: config.version };
  const identify =
    options.authenticate ??
    openBearer({
      issuer: config.issuer.url,
      audience: config.issuer.audience ?? mcpUrl,
      requiredScopes: config.issuer.scopes,
      subjectClaim: config.issuer.subjectClaim,
      acceptsUntypedTokens: config.issuer.acceptsUntypedTokens,
      ...(config.issuer.clientIdWhenMissing === undefined
        ? {}
        : { clientIdWhenMissing: config.issuer.clientIdWhenMissing }),
      fetch: (url, init) => egress.fetch(url, init),
      wallMs,
    });
  const limit = callerLimit(config.limits.requestsPerMinute, nowMs);
  const limited: Authenticate = async (request) => {
    const caller = await identify(request);
    if (caller !== undefined) limit(caller.owner);
    return caller;
  };
  const older: LegacyOptions = {
    tasks: engine.tasks,
    catalogue,
    keyring,
    serverInfo: info,
    delivery: config.delivery,
    companions: config.companionTools,
    settings: { holdMs: config.timing.holdMs },
    log,
    scrubText: scrub,
    wallMs,
    nowMs,
  };
  const legacy = openLegacyFace(older);
  app.addHook('preClose', () => legacy.close());
  await mountMcp(app, {
    resource: {
      publicUrl,
      path: '/mcp',
      authorizationServers: [config.issuer.url],
      scopes: config.issuer.scopes,
      name: config.name,
    },
    info,
    authenticate: limited,
    tasks: engine.tasks,
    catalogue,
    keyring,
    legacy,
    allowedOrigins: config.allowedOrigins,
    delivery: config.delivery,
    holdMs: config.timing.holdMs,
    listen: { streamsPerOwner: config.limits.streamsPerOwner },
    scrub,
    log,
    wallMs,
    nowMs,
  });

  return {
    app,
    engine,
    ledger,
    log,
    kids: keyring.kids,
    authenticate: identify,
    serveStdio: (caller) =>
      serveStdio({
        caller,
        catalogue,
        legacy: older,
        modern: openFace2026({
          tasks: engine.tasks,
          catalogue,
          seal: stateSeal(keyring),
          info,
          scrub,
          log,
          wallMs,
          nowMs,
          legMs: config.timing.holdMs,
        }),
        log,
      }),
    start: () => engine.start(),
    replaceTools(next) {
      const completed = complete(next);
      catalogue.replace(completed);
      tools.clear();
      for (const tool of completed) tools.set(tool.name, tool);
    },
    async stop() {
      draining = true;
      // Ends streams and held calls first, then waits for what is being answered.
      // A connection that somebody opened and never used would hold the close for a minute.
      const slow = setTimeout(() => app.server.closeAllConnections(), config.timing.graceMs);
      await app.close();
      clearTimeout(slow);
      await engine.stop();
      await egress.close();
      await ledger.close();
    },
  };
}
