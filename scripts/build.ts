/**
 * Builds what is published: dist/ with the JavaScript and the declarations of src/, and the Python that is
 * among it as it is. A folder given as an argument is filled in place of dist/.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const root = dirname(import.meta.dirname);
const outDir = resolve(process.argv[2] ?? join(root, 'dist'));

rmSync(outDir, { recursive: true, force: true });
const { status } = spawnSync(
  join(root, 'node_modules', '.bin', 'tsc'),
  ['--project', join(root, 'tsconfig.build.json'), '--outDir', outDir],
  { stdio: 'inherit' },
);
const src = join(root, 'src');
for (const file of globSync('**/*.py', { cwd: src })) cpSync(join(src, file), join(outDir, file));
process.exitCode = status ?? 1;
