/** `keyturn serve`: starts, says what it serves and how to connect, and ends cleanly on SIGTERM or SIGINT. */
import { parseArgs } from 'node:util';
import { openKeyturn } from '../app.ts';
import type { Config } from '../config.ts';
import { ownerOf } from '../elicitation/owner.ts';
import { loadConfig } from './load.ts';
import { sandboxed } from './sandboxed.ts';

function say(line = ''): void {
  process.stdout.write(`${line}\n`);
}

function howToConnect(mcpUrl: string): void {
  say('Connect a host:');
  say(`  Claude Code    claude mcp add --transport http keyturn ${mcpUrl}`);
  say(`  VS Code        code --add-mcp '{"name":"keyturn","type":"http","url":"${mcpUrl}"}'`);
  say(`  MCP Inspector  npx @modelcontextprotocol/inspector --transport http --server-url ${mcpUrl}`);
  say();
}

function summary(config: Config): void {
  const ledger = 'file' in config.ledger ? `SQLite, ${config.ledger.file}` : 'PostgreSQL';
  say(`${config.name}: ${config.publicUrl}`);
  say(`  MCP endpoint   ${config.publicUrl.replace(/\/$/, '')}/mcp`);
  say(`  Issuer         ${config.issuer.url} (people are known by "${config.issuer.subjectClaim}")`);
  say(`  Ledger         ${ledger}`);
  say(`  Providers      ${Object.keys(config.providers).join(', ') || 'none'}`);
  say(`  Tools          ${config.tools.map((tool) => tool.name).join(', ') || 'none'}`);
  say();
}

/** Everything is stored and handed back: a job that does not listen to its end keeps the process for a moment more. */
function leave(): void {
  setTimeout(() => process.exit(), 500).unref();
}

/** Resolves at the first SIGTERM or SIGINT. */
function asked(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}

export async function serve(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      sandbox: { type: 'boolean', default: false },
      port: { type: 'string' },
      stdio: { type: 'boolean', default: false },
      /** Subject of the one person behind a pipe, as the issuer names them. */
      as: { type: 'string' },
    },
  });
  const stop = asked();
  if (values.sandbox) {
    const port = Number(values.port ?? process.env['PORT'] ?? '3000');
    if (!Number.isInteger(port) || port < 1 || port > 65_533) {
      process.stderr.write('keyturn serve: --port (or PORT) must be a number from 1 to 65533\n');
      return 2;
    }
    const { openWorld } = await sandboxed(() => import('../world.ts'));
    const world = await openWorld({
      port,
      ports: { issuer: port + 1, saas: port + 2 },
    });
    say(`Keyturn with its sandbox: ${world.publicUrl}`);
    say(`  MCP endpoint    ${world.mcpUrl}`);
    say(
      `  Sign in         ${world.sandbox.issuer.issuer} as ${names(world.sandbox.issuer.accounts)}, no password`,
    );
    say(
      `  Paperboat       ${world.sandbox.saas.origin}, a SaaS to connect: ${names(world.sandbox.saas.accounts)}`,
    );
    say(`  My connections  ${world.publicUrl}/connections`);
    say(
      '  Tools           import_records, ingest_github_issues: 1,000 each, stop for a sign-in at Paperboat',
    );
    say();
    howToConnect(world.mcpUrl);
    say('Everything is on loopback and made up. Ctrl+C ends it.');
    await stop;
    await world.close();
    return 0;
  }
  const config = await loadConfig(values.config);
  if (values.stdio && values.as === undefined) {
    process.stderr.write('keyturn serve --stdio: --as <subject> says whose tasks these are\n');
    return 2;
  }
  const keyturn = await openKeyturn(config);
  await keyturn.app.listen(config.listen);
  keyturn.start();
  if (values.stdio) {
    // Standard output belongs to the protocol: nothing else is written to it.
    const caller = {
      owner: ownerOf({ issuer: config.issuer.url, subject: values.as ?? '' }),
      clientId: 'stdio',
      scopes: [],
    };
    const pipe = await keyturn.serveStdio(caller);
    await Promise.race([stop, pipe.closed]);
    await pipe.close();
    await keyturn.stop();
    leave();
    return 0;
  }
  summary(config);
  howToConnect(`${config.publicUrl.replace(/\/$/, '')}/mcp`);
  await stop;
  keyturn.log.info('server.stopping');
  await keyturn.stop();
  leave();
  return 0;
}

function names(accounts: readonly { id: string }[]): string {
  return accounts.map((account) => account.id).join(' or ');
}
