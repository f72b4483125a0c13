/**
 * Lint rules, and the import fences of the architecture as two tables: which part may import which, and which
 * library has which home.
 */
import { defineConfig } from 'oxlint';

/** A part imports only from itself and from parts of earlier rows; parts of one row do not see each other. */
const LAYERS = [
  ['errors', 'clock', 'log', 'secret', 'secrets-in-use'],
  ['task', 'elicitation'],
  ['store'],
  ['vault', 'provider'],
  ['engine'],
  ['ingest', 'mcp', 'http', 'callbacks'],
  ['config', 'sandbox'],
  ['app'],
  ['world'],
  ['demo'],
  ['cli', 'index'],
] as const;

/** One library, one home (a regular expression over the module name). */
const HOMES: Record<string, { module: string; parts: string[] }> = {
  'openid-client': { module: '^openid-client$', parts: ['provider', 'callbacks'] },
  undici: { module: '^undici$', parts: ['provider'] },
  keyv: { module: '^keyv$|^@keyv/', parts: ['vault'] },
  sql: { module: '^node:sqlite$|^pg$|^graphile-worker$', parts: ['store', 'engine', 'demo'] },
  mcp: { module: '^@modelcontextprotocol/', parts: ['mcp', 'sandbox'] },
  fastify: { module: '^fastify$|^@fastify/', parts: ['app', 'http', 'mcp', 'callbacks', 'sandbox'] },
  'oidc-provider': { module: '^oidc-provider$', parts: ['sandbox'] },
};

const parts = LAYERS.flat();
const files = (part: string) =>
  part === 'callbacks' ? ['callbacks/**/*.ts'] : [`src/${part}/**/*.ts`, `src/${part}.ts`];

function fence(part: string) {
  const row = LAYERS.findIndex((layer) => (layer as readonly string[]).includes(part));
  // The first layer is flat: its files may use each other.
  const open = row === 0 ? [...LAYERS[0]] : [part, ...LAYERS.slice(0, row).flat()];
  const closed = parts.filter((other) => !(open as string[]).includes(other));
  const patterns = [
    ...closed.map((other) => ({
      regex: `^\\.{1,2}/(?:\\.\\./)*(?:src/)?${other}(?:/.*|\\.ts)$`,
      message: `${part} may not import ${other}`,
    })),
    ...Object.entries(HOMES)
      .filter(([, home]) => !home.parts.includes(part))
      .map(([name, home]) => ({ regex: home.module, message: `${name} lives in ${home.parts.join(', ')}` })),
  ];
  return {
    files: files(part),
    rules: { 'no-restricted-imports': ['error', { patterns }] as ['error', unknown] },
  };
}

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'node', 'promise'],
  options: { typeAware: true },
  categories: { correctness: 'error' },
  rules: {
    'typescript/switch-exhaustiveness-check': 'error',
    'typescript/no-floating-promises': 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],
    'no-console': 'error',
  },
  overrides: [
    ...parts.map(fence),
    // A credential meets a request in one place; nothing else opens connections of its own.
    {
      files: ['src/**/*.ts', 'callbacks/**/*.ts'],
      rules: {
        'no-restricted-globals': ['error', { name: 'fetch', message: 'use src/provider/egress.ts' }],
      },
    },
    { files: ['src/sandbox/**/*.ts', 'src/cli/**/*.ts'], rules: { 'no-restricted-globals': 'off' } },
    { files: ['**/*.config.ts'], rules: { 'import/no-default-export': 'off' } },
  ],
});
