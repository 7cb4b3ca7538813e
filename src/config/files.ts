/**
 * Reads the files that a configuration consists of or names. A file that cannot be read is a mistake to
 * report beside others, not an exception.
 */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConfigFile } from './layers.ts';
import type { Mistakes } from './mistakes.ts';
import type { Environment } from './variables.ts';

const DEFAULT_NAME = 'afterword.yaml';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
};

export function readText(path: string): { readonly text: string } | { readonly fault: string } {
  try {
    return { text: readFileSync(path, 'utf8') };
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException;
    return { fault: REASONS[code] ?? code };
  }
}

interface Whereabouts {
  /** Named on the command line. */
  readonly file?: string | undefined;
  readonly env: Environment;
  readonly cwd: string;
  readonly mistakes: Mistakes;
}

/** The file named by the command, else by `AFTERWORD_CONFIG`, else `./afterword.yaml` if there is one. */
export function readConfigFile({ file, env, cwd, mistakes }: Whereabouts): ConfigFile | undefined {
  const named = file ?? env.AFTERWORD_CONFIG;
  if (named === undefined && !existsSync(resolve(cwd, DEFAULT_NAME))) return undefined;
  const name = named ?? DEFAULT_NAME;
  const path = resolve(cwd, name);
  const read = readText(path);
  if ('text' in read) return { name, path, text: read.text };
  const source = named !== undefined && file === undefined ? 'AFTERWORD_CONFIG' : name;
  mistakes.addFatal({ source }, [], `the configuration file ${name} cannot be read: ${read.fault}`);
  return undefined;
}
