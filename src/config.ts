/**
 * The configuration: one object, checked as a whole. Every problem is reported at once, each with its path and a hint.
 * Secrets come from environment variables or files, never from the object itself.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { Refusal } from './errors.ts';
import { SUBJECT_CLAIMS } from './elicitation/owner.ts';
import type { AnyTool } from './engine/define.ts';
import { DEFAULT_SETTINGS } from './engine/settings.ts';
import { providerSettings } from './provider/settings.ts';
import { Secret, secret } from './secret.ts';

/** Where a secret is found. */
const secretSource = z.union([
  z.strictObject({ env: z.string().min(1) }),
  z.strictObject({ file: z.string().min(1) }),
]);

/** Where a secret is found: the name of an environment variable, or the path of a file. */
export type SecretSource = z.infer<typeof secretSource>;

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

const webUrl = z.string().superRefine((value, context) => {
  let url: URL;
  try {
    url = new URL(value);
  } catch {
    context.addIssue({
      code: 'custom',
      message: 'must be an absolute URL, such as https://keyturn.example.com',
    });
    return;
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) {
    context.addIssue({ code: 'custom', message: 'must be https; plain http is for loopback hosts only' });
  }
  if (url.search !== '' || url.hash !== '' || url.username !== '') {
    context.addIssue({ code: 'custom', message: 'must have no query, fragment or user' });
  }
});

const ms = z.int().positive();
const count = z.int().positive();

const tool = z.custom<AnyTool>(
  (value) =>
    typeof value === 'object' && value !== null && 'kind' in value && 'run' in value && 'name' in value,
  { message: 'must come from defineTool(…) or defineJob(…)' },
);

const schema = z.strictObject({
  /** Name of this server on pages and in questions. */
  name: z.string().min(1).max(80),
  version: z.string().min(1).max(40).default('0.0.0'),
  /** The one URL that everything we emit is made from (D14). */
  publicUrl: webUrl,
  listen: z
    .strictObject({
      host: z.string().min(1).default('127.0.0.1'),
      port: z.int().min(0).max(65_535).default(3000),
    })
    .default({ host: '127.0.0.1', port: 3000 }),
  /** The authorization server of this MCP server. */
  issuer: z.strictObject({
    url: webUrl,
    /** Audience that access tokens must carry; the MCP endpoint's URL by default. */
    audience: z.string().min(1).optional(),
    /** Scopes that every access token must carry. */
    scopes: z.array(z.string().min(1)).default([]),
    subjectClaim: z.enum(SUBJECT_CLAIMS).default('sub'),
    /**
     * Also takes access tokens whose header does not say `at+jwt` (RFC 9068), for issuers that cannot. Danger: an ID
     * token is then told apart by its audience and claims only.
     */
    acceptsUntypedTokens: z.boolean().default(false),
    /** Stands in where access tokens name no client: all clients of a person are then one. */
    clientIdWhenMissing: z.string().min(1).optional(),
    /** Our own client at the issuer, for the sign-in of people in the browser. */
    client: z.strictObject({ id: z.string().min(1), secret: secretSource.optional() }),
    /** Scopes of the browser sign-in. */
    signInScopes: z.array(z.string().min(1)).default(['openid', 'email', 'profile']),
  }),
  ledger: z
    .union([z.strictObject({ file: z.string().min(1) }), z.strictObject({ postgres: secretSource })])
    .default({ file: '.keyturn/keyturn.sqlite' }),
  vault: z.strictObject({ keys: secretSource }).default({ keys: { env: 'KEYTURN_VAULT_KEYS' } }),
  /** Providers by the name that jobs use. */
  providers: z
    .record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/), providerSettings(secretSource))
    .default({}),
  tools: z.array(tool).default([]),
  /** Origins that may send browser requests to `/mcp`; none by default. */
  allowedOrigins: z.array(webUrl).default([]),
  /** Private or loopback origins that we may reach as a client. */
  allowPrivate: z.array(z.string().min(1)).default([]),
  /** Proxies whose `X-Forwarded-For` counts for rate limits, and for nothing else. */
  trustedProxies: z.array(z.string().min(1)).default([]),
  /** Ways for links to reach people whose client shows no URL (D9). Off by default. */
  delivery: z
    .strictObject({ textLink: z.union([z.boolean(), z.array(z.string().min(1))]).default(false) })
    .default({ textLink: false }),
  /** When connections end by themselves; never, unless it says so. */
  connections: z.strictObject({ maxIdleMs: ms.optional(), maxAgeMs: ms.optional() }).default({}),
  companionTools: z.enum(['auto', 'always', 'never']).default('auto'),
  waitMs: ms.default(DEFAULT_SETTINGS.waitMs),
  defaultTtlMs: ms.default(24 * 3_600_000),
  maxTtlMs: ms.default(7 * 24 * 3_600_000),
  limits: z
    .strictObject({
      workers: count.default(DEFAULT_SETTINGS.workers),
      runningPerOwner: count.default(DEFAULT_SETTINGS.runningPerOwner),
      openPerOwner: count.default(1_000),
      queueDepth: count.default(10_000),
      streamsPerOwner: count.default(20),
      requestsPerMinute: count.default(6_000),
      pagesPerMinute: count.default(120),
    })
    .prefault({}),
  /** Lengths that tests shorten; the defaults are right for production. */
  timing: z
    .strictObject({
      leaseMs: ms.default(DEFAULT_SETTINGS.leaseMs),
      sweepEveryMs: ms.default(DEFAULT_SETTINGS.sweepEveryMs),
      exchangeLeaseMs: ms.default(DEFAULT_SETTINGS.exchangeLeaseMs),
      earlyMs: z.int().nonnegative().default(DEFAULT_SETTINGS.earlyMs),
      graceMs: ms.default(DEFAULT_SETTINGS.graceMs),
      outageMs: ms.default(DEFAULT_SETTINGS.outageMs),
      /** How long a call without a task handle is held before it is answered that the work goes on. */
      holdMs: ms.default(50_000),
    })
    .prefault({}),
  log: z
    .strictObject({ level: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info') })
    .default({ level: 'info' }),
});

/** The configuration as it is written. */
export type ConfigInput = z.input<typeof schema>;

/** The configuration as it is used: every default filled in. */
export type Config = z.output<typeof schema>;

/** Types a configuration; checking happens at start. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}

/** A problem of a configuration. */
export interface ConfigProblem {
  /** Where it is: `providers.github.clientId`. Empty for the whole. */
  readonly path: string;
  readonly problem: string;
}

/**
 * Checks a configuration.
 *
 * @throws Refusal `configuration_invalid`; its message lists every problem with its path.
 */
export function readConfig(input: unknown): Config {
  const result = schema.safeParse(input);
  const problems = result.success ? crossProblems(result.data) : result.error.issues.flatMap(describe);
  if (problems.length > 0) {
    const lines = problems.map(({ path, problem }) => `  ${path === '' ? '(root)' : path}: ${problem}`);
    throw new Refusal('configuration_invalid', {
      message: `The configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${lines.join('\n')}`,
      facts: { problems: problems.map(({ path, problem }) => `${path}: ${problem}`) },
    });
  }
  return result.data as Config;
}

function describe(issue: z.core.$ZodIssue): ConfigProblem[] {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: path === '' ? key : `${path}.${key}`,
      problem: 'is not a setting; check its spelling',
    }));
  }
  if (issue.code === 'invalid_union')
    return [{ path, problem: 'fits none of the forms that are allowed here' }];
  if (issue.code === 'invalid_type') {
    return [
      {
        path,
        problem: issue.input === undefined ? `is missing (${issue.expected})` : `must be ${issue.expected}`,
      },
    ];
  }
  return [{ path, problem: issue.message }];
}

/** First segments of our routes: a prefix of the same name could not be told from them. */
const OWN_PATHS = [
  'callback',
  'connect',
  'connections',
  'healthz',
  'mcp',
  'metrics',
  'outcome',
  'readyz',
  'sign-in',
  '.well-known',
];

/** Rules that look at more than one field. */
function crossProblems(config: Config): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const names = new Set<string>();
  config.tools.forEach((one, index) => {
    if (names.has(one.name))
      problems.push({ path: `tools.${index}.name`, problem: `"${one.name}" is there twice` });
    names.add(one.name);
    if (one.kind !== 'job') return;
    for (const provider of Object.keys(one.requires ?? {})) {
      if (!Object.hasOwn(config.providers, provider)) {
        problems.push({
          path: `tools.${index}.requires.${provider}`,
          problem: `no provider of this name; add providers.${provider}`,
        });
      }
    }
  });
  const [, first = ''] = new URL(config.publicUrl).pathname.split('/');
  if (OWN_PATHS.includes(first)) {
    problems.push({
      path: 'publicUrl',
      problem: `"/${first}" is a path of Keyturn's own; take another prefix, or better an origin`,
    });
  }
  if (config.maxTtlMs < config.defaultTtlMs) {
    problems.push({ path: 'maxTtlMs', problem: 'must not be less than defaultTtlMs' });
  }
  return problems;
}

/**
 * Fetches a secret from where it is kept.
 *
 * @throws Refusal `configuration_invalid` naming the setting, never the value.
 */
export function readSecret(
  source: SecretSource,
  setting: string,
  env: NodeJS.ProcessEnv = process.env,
): Secret {
  if ('env' in source) {
    const value = env[source.env];
    if (value === undefined || value === '') {
      throw new Refusal('configuration_invalid', {
        message: `${setting}: the environment variable ${source.env} is not set`,
      });
    }
    return secret(value.trim());
  }
  try {
    const value = readFileSync(source.file, 'utf8').trim();
    if (value !== '') return secret(value);
  } catch (error) {
    throw new Refusal('configuration_invalid', {
      message: `${setting}: the file ${source.file} cannot be read`,
      cause: error,
    });
  }
  throw new Refusal('configuration_invalid', { message: `${setting}: the file ${source.file} is empty` });
}
