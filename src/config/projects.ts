/**
 * Checks the maps whose keys the operator chooses: projects, with the keys that their tokens are checked
 * with, and apps. Each is checked whole, whatever is wrong with its neighbours.
 */
import { checkBlock, whole } from './check.ts';
import type { AppConfig, JwtKeys, ProjectConfig } from './config.ts';
import { readText } from './files.ts';
import { publicKeyFault } from './keys.ts';
import type { Path } from './mistakes.ts';
import { APP, HOSTED_APP, JWT, JWT_KEYS, NAME, PROJECT } from './schema.ts';
import type { Settings } from './settings.ts';

const SECRET_BYTES = 32;
const SHORT_SECRET = `is shorter than ${SECRET_BYTES} bytes and may be guessed; make one with: openssl rand -base64 32`;
const NAME_RULE = 'letters, digits, `-` and `_`, at most 63, starting with a letter or digit';

export interface CheckedProjects {
  readonly projects: ReadonlyMap<string, ProjectConfig>;
  /** Where the public keys were read from, by project. */
  readonly keyFiles: ReadonlyMap<string, string>;
}

export function checkProjects(settings: Settings): CheckedProjects {
  const projects = new Map<string, ProjectConfig>();
  const keyFiles = new Map<string, string>();
  for (const id of Object.keys(settings.map(['projects']) ?? {})) {
    const path = ['projects', id];
    if (!NAME.test(id)) settings.mistake(path, `is not a project's name; expected ${NAME_RULE}`);
    const fields = checkBlock(settings, path, PROJECT, ['jwt']);
    if (fields === undefined) continue;
    const keys = checkKeys(settings, [...path, 'jwt']);
    if (keys.file !== undefined) keyFiles.set(id, keys.file);
    projects.set(id, { id, jwt: keys.jwt, ...whole(fields) });
  }
  return { projects, keyFiles };
}

function checkKeys(settings: Settings, path: Path): { jwt: JwtKeys; file?: string } {
  const jwt = checkBlock(settings, path, JWT);
  if (jwt === undefined) return { jwt: {} };
  const given = JWT_KEYS.filter(key => settings.has([...path, key]));
  if (given.length !== 1) settings.mistake(path, `expected exactly one of ${JWT_KEYS.join(', ')}`);
  const { publicKey, ...others } = jwt;
  if (others.secret !== undefined && Buffer.byteLength(others.secret) < SECRET_BYTES) {
    settings.warn([...path, 'secret'], SHORT_SECRET);
  }
  if (publicKey === undefined) return { jwt: others };
  const file = settings.resolve([...path, 'publicKey'], publicKey);
  return { jwt: { ...others, publicKey: readPublicKey(settings, [...path, 'publicKey'], file) }, file };
}

function readPublicKey(settings: Settings, path: Path, file: string): string {
  const read = readText(file);
  const fault = 'text' in read ? publicKeyFault(read.text) : `cannot be read: ${read.fault}`;
  if (fault !== undefined) settings.mistake(path, `the file ${fault}`);
  return 'text' in read ? read.text : '';
}

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

type AppFields = Pick<AppConfig, 'runtime' | 'url' | 'forwardAuthorization'>;

function checkApp(settings: Settings, path: Path): AppFields | undefined {
  const hosted = ['entry', 'command'].some(key => settings.has([...path, key]));
  // Beside the mistake about hosting, a missing `url` would be said twice.
  const keys = { ...APP, ...HOSTED_APP, url: hosted ? APP.url.optional() : APP.url };
  const checked = checkBlock(settings, path, keys);
  if (checked === undefined) return undefined;
  for (const key of Object.keys(HOSTED_APP).filter(key => settings.has([...path, key]))) {
    settings.warn([...path, key], 'has no effect on an app reached by `url`');
  }
  const { runtime, url, forwardAuthorization } = whole<AppFields>(checked);
  return { runtime, url, forwardAuthorization };
}
