import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFixtureServer, type FixtureServer } from './fixture-server.ts';
import { runSuite } from './run-suite.ts';

let server: FixtureServer;

beforeAll(async () => {
  server = await openFixtureServer();
});

afterAll(() => server.close());

const expected = (revision: string): string =>
  fileURLToPath(new URL(`expected-failures-${revision}.yml`, import.meta.url));

// The requirement sets run these without scoring them, so that they are judged by name.
describe('every check passes of', () => {
  test.each([
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
    'tasks-required-task-error',
    'tasks-mrtr-composition',
    'http-header-validation',
    'http-custom-header-server-validation',
  ])('%s', async (scenario) => {
    const run = await runSuite(server.url, '--scenario', scenario);
    expect(run.checks.filter((check) => check.status !== 'SUCCESS')).toEqual([]);
    // The scenario's own checks, and the one that every message fits the schema.
    expect(run.checks.length).toBeGreaterThan(1);
    expect(run.code).toBe(0);
  });
});

test.each(['2026-07-28', '2025-11-25'])(
  'of the requirements of %s nothing fails but what is not offered, and nothing of that passes',
  async (revision) => {
    const run = await runSuite(
      server.url,
      '--requirements',
      revision,
      '--expected-failures',
      expected(revision),
    );
    expect(run.output).toContain('SUMMARY');
    expect(run.code, run.output.slice(-4_000)).toBe(0);
  },
);
