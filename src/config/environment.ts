/**
 * The configuration as environment variables: `AFTERWORD_` and the key's path in capitals, for every key of
 * fixed name; `<NAME>_FILE` names a file to read the value from. A variable that means nothing is a mistake,
 * since it is most likely misspelt.
 */
import { resolve } from 'node:path';
import { readText } from './files.ts';
import { type Mistakes, nearest, type Path } from './mistakes.ts';
import { NAMED, NESTED, TOP } from './schema.ts';
import type { Environment } from './variables.ts';

export interface Override {
  readonly path: Path;
  /** The variable that gave it, with `_FILE` where the value was in a file. */
  readonly variable: string;
  readonly text: string;
}

interface Surroundings {
  readonly env: Environment;
  readonly cwd: string;
  readonly mistakes: Mistakes;
}

const PREFIX = 'AFTERWORD_';
const OTHERS: readonly RegExp[] = [
  /^AFTERWORD_CONFIG$/,
  /^AFTERWORD_WEBHOOK_SECRET$/, // of `listen`, `verify` and `call`
  /^AFTERWORD_(?:URL|PROJECT|TOKEN|TOKEN_FILE)$/, // of `call` and `runs`
  /^AFTERWORD_FAULTS$/,
  /^AFTERWORD_TEST_/,
];

/** Every key that a variable can set, by the variable's name. */
export function variables(): ReadonlyMap<string, Path> {
  const paths: Path[] = [
    ...[...Object.keys(TOP), ...NAMED].map(key => [key]),
    ...Object.entries(NESTED).flatMap(([name, block]) => Object.keys(block).map(key => [name, key])),
  ];
  return new Map(paths.map(path => [variableName(path), path]));
}

function variableName(path: Path): string {
  const words = path.map(key => String(key).replaceAll(/[A-Z]/g, letter => `_${letter}`));
  return PREFIX + words.join('_').toUpperCase();
}

export function readOverrides({ env, cwd, mistakes }: Surroundings): Override[] {
  const overrides: Override[] = [];
  for (const [variable, path] of variables()) {
    const inFile = `${variable}_FILE`;
    const text = env[variable];
    const file = env[inFile];
    if (text !== undefined && file !== undefined) {
      mistakes.add({ source: variable }, path, `expected one of ${variable} and ${inFile}; both are set`);
    } else if (text !== undefined) {
      overrides.push({ path, variable, text });
    } else if (file !== undefined) {
      const read = readText(resolve(cwd, file));
      if ('fault' in read) mistakes.add({ source: inFile }, path, `the file cannot be read: ${read.fault}`);
      else overrides.push({ path, variable: inFile, text: read.text.replace(/\r?\n$/, '') });
    }
  }
  return overrides;
}

/** `referred` are the variables that the configuration file names itself: using one shows that it is meant. */
export function refuseUnknownVariables(
  { env, mistakes }: Omit<Surroundings, 'cwd'>,
  referred: ReadonlySet<string>,
): void {
  const known = [...variables().keys()].flatMap(name => [name, `${name}_FILE`]);
  for (const name of Object.keys(env).toSorted()) {
    if (!name.startsWith(PREFIX) || env[name] === undefined) continue;
    if (known.includes(name) || referred.has(name) || isServiceLink(name, env)) continue;
    if (OTHERS.some(other => other.test(name))) continue;
    const meant = nearest(bare(name), known.map(bare));
    const hint = meant ? ` (did you mean ${PREFIX}${meant}?)` : '';
    mistakes.add({ source: name }, [], `is not a variable of Afterword${hint}`);
  }
}

// The prefix that all have in common would make any two of them look alike.
function bare(variable: string): string {
  return variable.slice(PREFIX.length);
}

// Kubernetes sets X_SERVICE_HOST, X_SERVICE_PORT, X_PORT, X_PORT_8080_TCP, … for every service X it has,
// and a service is easily called `afterword`.
function isServiceLink(name: string, env: Environment): boolean {
  const service = /^(.+?)_(?:SERVICE_HOST|SERVICE_PORT|PORT)(?:_.*)?$/.exec(name)?.[1];
  return service !== undefined && env[`${service}_SERVICE_HOST`] !== undefined;
}
