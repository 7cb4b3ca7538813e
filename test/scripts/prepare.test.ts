/**
 * What npm runs after an install does no harm where the dashboard cannot be built: without devDependencies, and
 * in an unpacked package, which has no scripts. (Where it can be, the packed package is tested for it.)
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

function prepareIn(cwd: string) {
  const { status, stdout, stderr } = spawnSync(scripts['prepare']!, { cwd, shell: true, encoding: 'utf8' });
  return { status, stdout, stderr };
}

it('says so where devDependencies are left out', () => {
  const checkout = temporaryDirectory();
  mkdirSync(join(checkout, 'scripts'));
  for (const file of ['package.json', 'scripts/prepare.js']) {
    copyFileSync(join(ROOT, file), join(checkout, file));
  }
  const stderr = expect.stringMatching(/^The dashboard is not built: .+\n$/) as string;
  expect(prepareIn(checkout)).toEqual({ status: 0, stdout: '', stderr });
});

it('is silent in an unpacked package', () => {
  expect(prepareIn(temporaryDirectory())).toEqual({ status: 0, stdout: '', stderr: '' });
});
