import { defineConfig } from 'vitest/config';

const long = process.env['KEYTURN_LONG'] === '1';

/** One project per ring; a ring is named after what is real in it. */
const ring = (name: string, timeoutMs: number) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: long ? timeoutMs * 20 : timeoutMs,
    hookTimeout: 60_000,
  },
});

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    // Two cores: more workers only make each other late.
    maxWorkers: 2,
    projects: [
      ring('unit', 20_000),
      ring('wire', 20_000),
      ring('store', 60_000),
      ring('peer', 60_000),
      ring('browser', 90_000),
      ring('crash', 120_000),
      ring('conformance', 180_000),
      ring('deploy', 60_000),
    ],
  },
});
