import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Every store of a test has a thread of its own, and every program a process: most of their start is compiling.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules', '.cache', 'compiled');

const shared = {
  environment: 'node',
  pool: 'forks',
  testTimeout: 20_000,
  hookTimeout: 20_000,
  expect: { poll: { timeout: 10_000 } },
} as const;

const FAULTS = 'test/faults/**/*.test.ts';
/** Of the dashboard, in a real browser. */
const BROWSER = 'test/browser/**/*.test.ts';
/** With a PostgreSQL server, of whole programs and their processes, of commands and a service, or of a whole store. */
const SYSTEM = [
  'test/**/*.postgres.test.ts',
  'test/bench*.test.ts',
  'test/{examples,package}.test.ts',
  'test/scripts/*.test.ts',
  'test/commands/{dev,serve}.test.ts',
  'test/commands/deliveries/*.test.ts',
  'test/runtime/{host,hosted-app,runners}.test.ts',
  'test/store/sqlite/{availability,crash,export,sharing,worker-loss}.test.ts',
  'test/store/sqlite.test.ts',
  'test/store/sqlite/runs/laws.test.ts',
  'test/store/sqlite/*/conformance.test.ts',
  'test/workers/workers.test.ts',
];

export default defineConfig({
  test: {
    maxWorkers: '100%', // much of the time is spent waiting
    projects: [
      {
        test: {
          ...shared,
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [FAULTS, BROWSER, ...SYSTEM],
        },
      },
      {
        test: {
          ...shared,
          name: 'system',
          include: SYSTEM,
          testTimeout: 60_000,
          globalSetup: 'test/support/postgres-setup.ts', // one server for all
        },
      },
      {
        test: {
          ...shared,
          name: 'browser',
          include: [BROWSER],
          testTimeout: 60_000,
          hookTimeout: 180_000, // a million deliveries take a while on a busy machine
          globalSetup: 'test/support/browser-setup.ts', // builds the dashboard
        },
      },
      {
        test: {
          ...shared,
          name: 'faults',
          include: [FAULTS],
          // A fault test loads the whole machine: one at a time, and long enough for its long form.
          fileParallelism: false,
          testTimeout: 60 * 60_000,
        },
      },
    ],
  },
});
