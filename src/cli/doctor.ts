/**
 * `keyturn doctor`: what an operator would otherwise find out from users. One line a check; exit code 1 when one fails.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { openKeyturn, type Keyturn } from '../app.ts';
import type { Config } from '../config.ts';
import { isRefusal, type Reason } from '../errors.ts';
import { openEgress } from '../provider/egress.ts';
import { keysFromEnvironment, keysFromFile } from '../vault/key-provider.ts';
import { loadConfig } from './load.ts';
import { hasLedger, say } from './operate.ts';

interface Finding {
  readonly check: string;
  readonly verdict: 'ok' | 'warning' | 'failed';
  readonly words: string;
}

/** Clocks may differ by this much before deadlines and tokens suffer. */
const CLOCK_MS = 30_000;

async function checkIssuer(config: Config): Promise<Finding[]> {
  const egress = openEgress({
    allowPrivate: config.allowPrivate,
    timeoutMs: 10_000,
    maxBodyBytes: 1_048_576,
  });
  try {
    const base = config.issuer.url.replace(/\/$/, '');
    const answer = await egress.fetch(`${base}/.well-known/openid-configuration`);
    if (!answer.ok) {
      return [{ check: 'issuer', verdict: 'failed', words: `its metadata answers ${answer.status}` }];
    }
    const metadata = (await answer.json()) as Record<string, unknown>;
    const same = metadata['issuer'] === config.issuer.url;
    const date = Date.parse(answer.headers.get('date') ?? '');
    const apartMs = Math.abs(Date.now() - date);
    return [
      same
        ? { check: 'issuer', verdict: 'ok', words: `${config.issuer.url} answers for itself` }
        : {
            check: 'issuer',
            verdict: 'failed',
            words: 'its metadata names another issuer than the configuration',
          },
      Number.isNaN(date)
        ? { check: 'clock', verdict: 'warning', words: 'the issuer sends no date to compare with' }
        : {
            check: 'clock',
            verdict: apartMs > CLOCK_MS ? 'failed' : 'ok',
            words: `${Math.round(apartMs / 1000)} s apart from the issuer`,
          },
      ...checkMetadata(metadata),
    ];
  } catch {
    return [{ check: 'issuer', verdict: 'failed', words: `${config.issuer.url} cannot be reached` }];
  } finally {
    await egress.close();
  }
}

/** What an issuer should say of itself so that sign-in is as safe as it can be. */
function checkMetadata(metadata: Record<string, unknown>): Finding[] {
  const lists = (name: string, value: string): boolean =>
    Array.isArray(metadata[name]) && (metadata[name] as unknown[]).includes(value);
  const findings: Finding[] = [];
  if (!lists('code_challenge_methods_supported', 'S256')) {
    findings.push({ check: 'issuer', verdict: 'warning', words: 'does not say that it checks PKCE (S256)' });
  }
  if (!lists('subject_types_supported', 'public')) {
    findings.push({
      check: 'issuer',
      verdict: 'warning',
      words:
        'names people differently to each client (pairwise): chat and browser may not agree on who is who',
    });
  }
  return findings;
}

function checkPublicUrl(config: Config): Finding[] {
  const url = new URL(config.publicUrl);
  const findings: Finding[] = [];
  if (url.protocol === 'http:') {
    findings.push({ check: 'publicUrl', verdict: 'warning', words: 'plain http: for this machine only' });
  }
  if (url.pathname !== '/') {
    findings.push({
      check: 'publicUrl',
      verdict: 'warning',
      words:
        'under a path: its cookies are shared with whatever else lives on this origin; an origin of its own is safer',
    });
  }
  return findings;
}

function redirectUris(config: Config): Finding[] {
  const base = config.publicUrl.replace(/\/$/, '');
  return [
    { check: 'redirect URI', verdict: 'ok', words: `at the issuer: ${base}/sign-in/return` },
    ...Object.keys(config.providers).map((id): Finding => ({
      check: 'redirect URI',
      verdict: 'ok',
      words: `at ${id}: ${base}/callback/${id}`,
    })),
  ];
}

/** Reasons of `openKeyturn` that speak of keys or sealed records: the ledger itself has opened by then. */
const OF_THE_VAULT: readonly Reason[] = [
  'vault_key_missing',
  'vault_record_unreadable',
  'vault_unavailable',
  'epoch_mismatch',
];

/** Opening proves the ledger, its schema, the keys and the epoch; nothing is started, and nothing is made. */
async function checkStores(config: Config, token: string | undefined): Promise<Finding[]> {
  const opens: Finding = { check: 'ledger', verdict: 'ok', words: 'opens, and its schema is this version’s' };
  const { keys } = config.vault;
  try {
    if (!hasLedger(config)) {
      await ('env' in keys ? keysFromEnvironment(process.env, keys.env) : keysFromFile(keys.file)).load();
      return [
        { check: 'ledger', verdict: 'ok', words: 'is not there yet; the first start makes it' },
        { check: 'vault', verdict: 'ok', words: 'its keys can be read' },
      ];
    }
    const keyturn = await openKeyturn(config);
    const findings: Finding[] = [
      opens,
      { check: 'vault', verdict: 'ok', words: 'every key that is in use is configured and right' },
    ];
    try {
      findings.push(await checkPeople(config, keyturn, token));
    } finally {
      await keyturn.stop();
    }
    return findings;
  } catch (error) {
    const words = error instanceof Error ? error.message : 'cannot be opened';
    if (isRefusal(error, 'configuration_invalid')) {
      return [{ check: 'secrets', verdict: 'failed', words }];
    }
    return isRefusal(error, ...OF_THE_VAULT)
      ? [opens, { check: 'vault', verdict: 'failed', words }]
      : [{ check: 'ledger', verdict: 'failed', words }];
  }
}

/**
 * Whether an access token and the browser sign-in know a person by the same name (R10): proved by people who did both,
 * or by the token of somebody who has just signed in.
 */
async function checkPeople(config: Config, keyturn: Keyturn, token: string | undefined): Promise<Finding> {
  const check = 'people';
  const connectionsUrl = `${config.publicUrl.replace(/\/$/, '')}/connections`;
  if (token === undefined) {
    const many = await keyturn.ledger.countProven();
    return many > 0
      ? { check, verdict: 'ok', words: `${many} are known by the same name to chat and browser` }
      : {
          check,
          verdict: 'warning',
          words: `not proved yet that chat and browser know people by the same name: sign in at ${connectionsUrl}, then run this with --token <file> holding an access token of yours`,
        };
  }
  try {
    const caller = await keyturn.authenticate({ headers: { authorization: `Bearer ${token}` } });
    const known = caller !== undefined && (await keyturn.ledger.countProven(caller.owner)) > 0;
    return known
      ? { check, verdict: 'ok', words: 'the access token and a browser sign-in name the same person' }
      : {
          check,
          verdict: 'failed',
          words: `nobody of the name in the access token has signed in at ${connectionsUrl}: sign in there and try again; if it stays so, the issuer names people differently to each client (pairwise identifiers)`,
        };
  } catch (error) {
    return {
      check,
      verdict: 'failed',
      words: `the access token is refused: ${error instanceof Error ? error.message : 'unknown'}`,
    };
  }
}

export async function doctor(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      /** File with an access token for the MCP endpoint, for the check of people. */
      token: { type: 'string' },
    },
  });
  const config = await loadConfig(values.config);
  const token = values.token === undefined ? undefined : readFileSync(values.token, 'utf8').trim();
  const findings: Finding[] = [
    { check: 'configuration', verdict: 'ok', words: 'fits' },
    ...checkPublicUrl(config),
    ...redirectUris(config),
    ...(await checkStores(config, token)),
    ...(await checkIssuer(config)),
  ];
  for (const { check, verdict, words } of findings) {
    say(`${verdict.padEnd(8)} ${check.padEnd(16)} ${words}`);
  }
  return findings.some((finding) => finding.verdict === 'failed') ? 1 : 0;
}
