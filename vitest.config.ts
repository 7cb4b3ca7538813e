import { defineConfig } from 'vitest/config';

const shared = { environment: 'node', pool: 'forks', testTimeout: 20_000, hookTimeout: 20_000 } as const;

const FAULTS = 'test/faults/**';
const POSTGRES = 'test/**/*.postgres.test.ts';

export default defineConfig({
  test: {
    maxWorkers: '100%', // much of the time is spent waiting
    projects: [
      { test: { ...shared, name: 'quick', include: ['test/**/*.test.ts'], exclude: [FAULTS, POSTGRES] } },
      {
        test: {
          ...shared,
          name: 'postgres',
          include: [POSTGRES],
          globalSetup: 'test/support/postgres-setup.ts', // one server for all
        },
      },
      {
        test: {
          ...shared,
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          // A fault test loads the whole machine: one at a time, and long enough for its long form.
          fileParallelism: false,
          testTimeout: 60 * 60_000,
        },
      },
    ],
  },
});
