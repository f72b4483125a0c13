/**
 * `keyturn doctor`: what an operator would otherwise find out from users. One line a check; exit code 1 when one fails.
 */
import { parseArgs } from 'node:util';
import { openKeyturn } from '../app.ts';
import type { Config } from '../config.ts';
import { openEgress } from '../provider/egress.ts';
import { loadConfig } from './load.ts';

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
    ];
  } catch {
    return [{ check: 'issuer', verdict: 'failed', words: `${config.issuer.url} cannot be reached` }];
  } finally {
    await egress.close();
  }
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

export async function doctor(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { config: { type: 'string' } } });
  const config = await loadConfig(values.config);
  const findings: Finding[] = [{ check: 'configuration', verdict: 'ok', words: 'fits' }];
  findings.push(...checkPublicUrl(config), ...redirectUris(config));
  try {
    // Opening proves the ledger, its schema, the keys and the epoch; nothing is started.
    const keyturn = await openKeyturn(config);
    findings.push({ check: 'ledger', verdict: 'ok', words: 'opens, and its schema is this version’s' });
    findings.push({
      check: 'vault',
      verdict: 'ok',
      words: 'every key that is in use is configured and right',
    });
    await keyturn.stop();
  } catch (error) {
    findings.push({
      check: 'ledger and vault',
      verdict: 'failed',
      words: error instanceof Error ? error.message : 'cannot be opened',
    });
  }
  findings.push(...(await checkIssuer(config)));
  for (const { check, verdict, words } of findings) {
    process.stdout.write(`${verdict.padEnd(8)} ${check.padEnd(16)} ${words}\n`);
  }
  return findings.some((finding) => finding.verdict === 'failed') ? 1 : 0;
}
