/**
 * A folder of configuration files for one test, and the loader run in it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type LoadedConfig, loadConfig } from '../../src/config/load.ts';
import { UsageError } from '../../src/errors.ts';

type Env = Record<string, string | undefined>;

export interface Folder {
  readonly path: string;
  write(name: string, text: string): string;
  load(env?: Env, file?: string): LoadedConfig;
  /** The lines of the mistakes. */
  mistakes(env?: Env, file?: string): string[];
}

/** `yaml` becomes its `afterword.yaml`. */
export function createFolder(yaml?: string): Folder {
  const path = mkdtempSync(join(tmpdir(), 'afterword-config-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const load = (env: Env = {}, file?: string) => loadConfig({ file, env, cwd: path });
  const write = (name: string, text: string) => {
    const target = join(path, name);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
    return target;
  };
  if (yaml !== undefined) write('afterword.yaml', yaml);
  return { path, write, load, mistakes: (env, file) => mistakesOf(() => load(env, file)) };
}

function mistakesOf(action: () => unknown): string[] {
  try {
    action();
  } catch (error) {
    if (error instanceof UsageError) return error.message.split('\n');
    throw error;
  }
  return [];
}
