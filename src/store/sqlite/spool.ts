/**
 * Large bodies, each in a file of the spool directory that bears the run's id: what a run ended with by that
 * alone, its request with a suffix.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const CHUNK = 500;

export interface Spool {
  path(name: string): string;
  /** Removes what no delivery and no run has any more; a file that is gone already is fine. */
  remove(names: readonly string[]): Promise<void>;
  /** Removes what a crash left behind before it was anyone's, or after, folders of drafts included. */
  sweep(spooled: (names: readonly string[]) => Promise<readonly string[]>): Promise<void>;
}

export function createSpool(dir: string): Spool {
  const path = (name: string) => join(dir, name);

  async function remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map(name => rm(path(name), { force: true })));
  }

  return {
    path,
    remove,
    async sweep(spooled) {
      const entries = await readdir(dir, { withFileTypes: true });
      const folders = entries.filter(entry => entry.isDirectory()).map(entry => path(entry.name));
      await Promise.all(folders.map(folder => rm(folder, { recursive: true, force: true })));
      const names = entries.filter(entry => entry.isFile()).map(entry => entry.name);
      for (let start = 0; start < names.length; start += CHUNK) {
        const chunk = names.slice(start, start + CHUNK);
        const kept = new Set(await spooled(chunk));
        await remove(chunk.filter(name => !kept.has(name)));
      }
    },
  };
}
