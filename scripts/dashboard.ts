/**
 * Builds the page of the dashboard into its dist/, which the admin listener gives out. A service that starts
 * meanwhile finds the page as it was or as it is now: files come in whole, index.html after all that it names,
 * and what was there before goes last. A folder given as an argument is built in place of dashboard/.
 */
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'vite';

const page = resolve(process.argv[2] ?? join(dirname(import.meta.dirname), 'dashboard'));
const dist = join(page, 'dist');
// Beside its place, so that a file can be moved there in one step.
const stage = await mkdtemp(join(page, '.dist-'));
process.env['NODE_ENV'] = 'production'; // a test that packs the package has another
try {
  await build({
    root: page,
    configFile: join(page, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: stage, emptyOutDir: true },
  });
  await replace(dist, stage);
} finally {
  await rm(stage, { recursive: true, force: true });
}

async function replace(old: string, fresh: string): Promise<void> {
  const before = await filesIn(old);
  const files = await filesIn(fresh);
  const ordered = [...files.filter(file => file !== 'index.html'), 'index.html'];
  for (const file of ordered) {
    await mkdir(dirname(join(old, file)), { recursive: true });
    await rename(join(fresh, file), join(old, file));
  }
  const gone = before.filter(file => !files.includes(file));
  for (const file of gone) await rm(join(old, file), { force: true });
}

/** Paths from the folder on. */
async function filesIn(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter(entry => entry.isFile())
    .map(entry => relative(folder, join(entry.parentPath, entry.name)));
}
