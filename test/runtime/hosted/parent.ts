/**
 * A process that runs the command of its arguments guarded, to be killed by a test. What the program prints
 * is printed on.
 */
import { spawnGuarded } from '../../../src/runtime/guarded-process.ts';

const env = process.env as Record<string, string>;
const { stdout } = spawnGuarded({ command: process.argv.slice(2), cwd: '/', env });
stdout.pipe(process.stdout);
