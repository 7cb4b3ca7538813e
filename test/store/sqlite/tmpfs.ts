/** A small file system of a test's own, where the machine permits it. */
import { spawnSync } from 'node:child_process';
import { onTestFinished } from 'vitest';

/** False when mounting is not permitted. */
export function mountTmpfs(dir: string, options: string): boolean {
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir], { stdio: 'ignore' });
  if (status !== 0) return false;
  onTestFinished(() => {
    spawnSync('umount', ['-l', dir], { stdio: 'ignore' });
  });
  return true;
}
