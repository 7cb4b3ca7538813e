/**
 * Before the tests in a browser: Chromium is looked for, and the dashboard built from its sources as they are. A
 * machine without Chromium skips these tests and says so; continuous integration must not.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { CHROMIUM, hasChromium } from './browser-program.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Whether there is a browser to test in. */
    browser: boolean;
  }
}

const BUILD = fileURLToPath(new URL('../../scripts/dashboard.ts', import.meta.url));

export default function setup(project: TestProject): void {
  const found = hasChromium();
  project.provide('browser', found);
  if (found) {
    build();
    return;
  }
  const reason = `there is no Chromium at ${CHROMIUM}; install it, or name another by AFTERWORD_TEST_CHROMIUM`;
  if (process.env['CI'] !== undefined) throw new Error(reason);
  console.warn(`The tests of the dashboard in a browser are skipped: ${reason}.`);
}

function build(): void {
  const { status } = spawnSync(process.execPath, [BUILD], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the dashboard cannot be built');
}
