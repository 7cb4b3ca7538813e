/**
 * A folder of functions as `afterword dev` serves it: one cortex app with the folder's name, whose files are
 * watched for changes.
 */
import { existsSync, type FSWatcher, statSync, watch } from 'node:fs';
import { basename, join } from 'node:path';
import type { AppConfig } from '../config/config.ts';
import { UsageError } from '../errors.ts';

export interface Folder {
  readonly app: AppConfig;
  readonly entry: string;
  /** Calls back a moment after files have changed, once for those that change together. */
  watch(changed: () => void): void;
  stop(): void;
}

const ENTRIES = ['main.ts', 'main.mts', 'main.js', 'main.mjs', 'main.py'];
/** An editor saves in several steps, and a formatter follows. */
const QUIET_MS = 150;
/** What functions are made of; what they may write while they run is not among it. */
const WATCHED = /\.([cm]?[jt]s|py|json|ya?ml|toml)$/;
const IGNORED = /(^|[\\/])(node_modules|\.[^\\/]+)[\\/]/;

export async function openFolder(path: string, projectId: string): Promise<Folder> {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`${path} is not a folder`);
  const name = ENTRIES.find(each => existsSync(join(path, each)));
  if (name === undefined) {
    throw new UsageError(`${path} has no ${ENTRIES.slice(0, -1).join(', ')} or ${ENTRIES.at(-1)}`);
  }
  const entry = join(path, name);
  let watcher: FSWatcher | undefined;
  let timer: NodeJS.Timeout | undefined;
  return {
    app: appOf(path, entry, projectId),
    entry,
    watch(changed) {
      watcher = watch(path, { recursive: true }, (_event, file) => {
        if (file === null || !WATCHED.test(file) || IGNORED.test(file)) return;
        clearTimeout(timer);
        timer = setTimeout(changed, QUIET_MS);
      });
    },
    stop() {
      clearTimeout(timer);
      watcher?.close();
    },
  };
}

function appOf(path: string, entry: string, projectId: string): AppConfig {
  const program = entry.endsWith('.py')
    ? ({ kind: 'python', entry, python: pythonOf(path) } as const)
    : ({ kind: 'node', entry } as const);
  const process = {
    program,
    cwd: path,
    env: {},
    replicas: 1,
    concurrency: 8,
    queue: 100,
    start: 'boot',
  } as const;
  return {
    projectId,
    name: nameOf(path),
    runtime: 'cortex',
    place: { kind: 'process', process },
    forwardAuthorization: false,
  };
}

/** The folder's own environment, where it has one. */
function pythonOf(path: string): string {
  return (
    ['.venv', 'venv'].map(each => join(path, each, 'bin', 'python')).find(each => existsSync(each)) ??
    'python3'
  );
}

/** As near to the folder's name as an app's may be. */
function nameOf(path: string): string {
  const name = basename(path)
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 63);
  return name === '' ? 'app' : name;
}
