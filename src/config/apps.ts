/**
 * Checks the apps: each is reached by its `url`, or run here from its `entry` or by its `command`. Each is
 * checked whole, whatever is wrong with its neighbours.
 */
import { statSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { checkBlock, whole } from './check.ts';
import type { AppConfig, AppPlace, ProcessConfig, Program } from './config.ts';
import type { Path } from './mistakes.ts';
import { APP, APP_PLACES, type Checked, HOSTED_APP, NAME, NAME_RULE } from './schema.ts';
import type { Settings } from './settings.ts';
import type { Environment } from './variables.ts';

type AppKeys = Checked<typeof APP> & Checked<typeof HOSTED_APP>;
type PlaceKey = (typeof APP_PLACES)[number];

/** By the ending of an entry, the runner of its language. */
const LANGUAGES: Readonly<Record<string, 'node' | 'python'>> = {
  '.ts': 'node',
  '.mts': 'node',
  '.js': 'node',
  '.mjs': 'node',
  '.cjs': 'node',
  '.py': 'python',
};

/**
 * Calls at once in one replica: a function may hold a whole model, a server looks after itself. Of an app at a
 * `url` only asynchronous calls are counted, and a long queue of those must not overrun it.
 */
const CONCURRENCY = { entry: 8, command: 256, url: 8 } as const;

const LAST_PORT = 65_535;

/** Keys that mean something only for some apps. */
const ONLY_FOR: Readonly<Record<string, readonly PlaceKey[]>> = {
  port: ['command'],
  health: ['command'],
  python: ['entry'],
};

/** By project, then by name. */
export function checkApps(settings: Settings): Map<string, Map<string, AppConfig>> {
  const apps = new Map<string, Map<string, AppConfig>>();
  const projects = settings.map(['projects']);
  for (const key of Object.keys(settings.map(['apps']) ?? {})) {
    const path = ['apps', key];
    const [projectId = '', name = '', ...rest] = key.split('/');
    if (!NAME.test(projectId) || !NAME.test(name) || rest.length > 0) {
      settings.mistake(path, `is not an app's key; expected project/name, each of ${NAME_RULE}`);
    } else if (projects !== undefined && !Object.hasOwn(projects, projectId)) {
      settings.mistake(path, `there is no project ${projectId}; expected one of \`projects\``);
    }
    const fields = checkApp(settings, path);
    if (fields === undefined) continue;
    const ofProject = apps.get(projectId) ?? new Map<string, AppConfig>();
    apps.set(projectId, ofProject.set(name, { projectId, name, ...fields }));
  }
  return apps;
}

type AppFields = Pick<AppConfig, 'runtime' | 'place' | 'forwardAuthorization'>;

/** Undefined where a mistake leaves nothing to make an app of. */
function checkApp(settings: Settings, path: Path): AppFields | undefined {
  const checked = checkBlock(settings, path, { ...APP, ...HOSTED_APP });
  if (checked === undefined) return undefined;
  const given = APP_PLACES.filter(key => settings.has([...path, key]));
  const [key] = given;
  if (key === undefined || given.length > 1) {
    settings.mistake(path, `expected exactly one of ${APP_PLACES.join(', ')}`);
    return undefined;
  }
  warnOfUseless(settings, path, key);
  const keys = whole<AppKeys>(checked);
  if (key !== 'url') checkHosted(settings, path, keys);
  const { runtime, forwardAuthorization } = keys;
  if (key === 'entry' && runtime === 'custom') {
    settings.mistake([...path, key], 'is for `runtime: cortex`; a custom app has a `command` or `url`');
  }
  if (key === 'command' && runtime === 'cortex') {
    settings.mistake([...path, key], 'is for `runtime: custom`; a cortex app has an `entry` or `url`');
  }
  const place = placeOf(settings, path, keys);
  return place && { runtime, place, forwardAuthorization };
}

function warnOfUseless(settings: Settings, path: Path, place: PlaceKey): void {
  for (const key of Object.keys(HOSTED_APP)) {
    const places = ONLY_FOR[key] ?? ['entry', 'command'];
    if (places.includes(place) || !settings.has([...path, key])) continue;
    settings.warn([...path, key], `has no effect on an app with \`${place}\``);
  }
}

function checkHosted(settings: Settings, path: Path, { cwd, port, replicas }: Partial<AppKeys>): void {
  if (cwd !== undefined && !isKind(settings.resolve([...path, 'cwd'], cwd), 'folder')) {
    settings.mistake([...path, 'cwd'], 'there is no such folder');
  }
  if (port !== undefined && replicas !== undefined && port + replicas - 1 > LAST_PORT) {
    settings.mistake([...path, 'port'], 'expected one that leaves a port for each of the replicas');
  }
}

function placeOf(settings: Settings, path: Path, keys: AppKeys): AppPlace | undefined {
  if (keys.url !== undefined) {
    return { kind: 'url', url: keys.url, concurrency: keys.concurrency ?? CONCURRENCY.url };
  }
  const program = programOf(settings, path, keys);
  if (program === undefined) return undefined;
  const { replicas, queue, start, env = {}, cwd } = keys;
  const home =
    program.kind === 'command' ? settings.resolve([...path, 'command'], '.') : dirname(program.entry);
  const process: ProcessConfig = {
    program,
    cwd: cwd === undefined ? home : settings.resolve([...path, 'cwd'], cwd),
    env,
    replicas,
    concurrency: keys.concurrency ?? CONCURRENCY[program.kind === 'command' ? 'command' : 'entry'],
    queue,
    start,
  };
  return { kind: 'process', process };
}

function programOf(settings: Settings, path: Path, keys: AppKeys): Program | undefined {
  const { command, port, health, python } = keys;
  if (command !== undefined) {
    return {
      kind: 'command',
      command,
      ...(port !== undefined && { port }),
      ...(health !== undefined && { health }),
    };
  }
  if (keys.entry === undefined) return undefined;
  const entry = settings.resolve([...path, 'entry'], keys.entry);
  const language = LANGUAGES[extname(entry)];
  if (language === undefined) {
    settings.mistake([...path, 'entry'], `expected a file that ends in ${Object.keys(LANGUAGES).join(', ')}`);
  } else if (!isKind(entry, 'file')) {
    settings.mistake([...path, 'entry'], 'there is no such file');
  }
  if (language === 'python') return { kind: 'python', entry, python };
  if (settings.has([...path, 'python']))
    settings.warn([...path, 'python'], 'has no effect: the entry is not Python');
  return { kind: 'node', entry };
}

function isKind(path: string, kind: 'file' | 'folder'): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return kind === 'file' ? (found?.isFile() ?? false) : (found?.isDirectory() ?? false);
}

/** Of no use to hide: without `PATH` a process would not find its interpreter. */
const NEVER_SECRET: ReadonlySet<string> = new Set(['PATH', 'HOME', 'USER', 'SHELL', 'LANG', 'TZ', 'TMPDIR']);

/** Set by the launcher, for the service alone. */
const OURS = 'UV_THREADPOOL_SIZE';

/**
 * What the processes of apps get of the service's environment: all but the service's own variables and
 * those that its configuration refers to, which are most likely secrets.
 */
export function environmentOfApps(env: Environment, referred: ReadonlySet<string>): Record<string, string> {
  const isPassed = (name: string): boolean =>
    !name.startsWith('AFTERWORD_') && name !== OURS && (!referred.has(name) || NEVER_SECRET.has(name));
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isPassed(name)) passed[name] = value;
  }
  return passed;
}
