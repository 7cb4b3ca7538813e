/**
 * Checks the projects, with the keys that their tokens are checked with. Each is checked whole, whatever is
 * wrong with its neighbours.
 */
import { checkBlock, whole } from './check.ts';
import type { JwtKeys, ProjectConfig } from './config.ts';
import { readText } from './files.ts';
import { MAKE_KEY, publicKeyFault } from './keys.ts';
import type { Path } from './mistakes.ts';
import { JWT, JWT_KEYS, NAME, NAME_RULE, PROJECT } from './schema.ts';
import type { Settings } from './settings.ts';

const SECRET_BYTES = 32;
const SHORT_SECRET = `is shorter than ${SECRET_BYTES} bytes and may be guessed; make one with: ${MAKE_KEY}`;

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
