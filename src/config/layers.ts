/**
 * The sources of a configuration, read but not checked: its file, and the variables that override parts of
 * it. `projects` and `apps` come from a variable as YAML text, under the rules of the file; every other
 * variable is taken literally.
 */
import { dirname } from 'node:path';
import type { Override } from './environment.ts';
import type { Mistakes, Path, Place } from './mistakes.ts';
import { NAMED } from './schema.ts';
import { createTemplate, type Environment, type Expansion } from './variables.ts';
import { readYaml } from './yaml.ts';

/** One source of values, for everything at and below its path. */
export interface Layer {
  readonly path: Path;
  readonly value: unknown;
  /** The folder that relative paths start from. */
  readonly base: string;
  /** `path` starts at the root of the configuration. */
  readonly place: (path: Path) => Place;
  readonly expand: (text: string) => Expansion;
}

export interface ConfigFile {
  /** As the operator wrote it. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  readonly text: string;
}

interface Sources {
  readonly file: ConfigFile | undefined;
  readonly overrides: readonly Override[];
  readonly env: Environment;
  readonly cwd: string;
  readonly mistakes: Mistakes;
}

export interface Layers {
  /** The first whose path leads to a value has it. */
  readonly layers: readonly Layer[];
  /** The variables that the texts refer to. */
  readonly referred: ReadonlySet<string>;
}

interface Text {
  readonly text: string;
  readonly path: Path;
  readonly base: string;
  readonly placeOfLine: (line: number) => Place;
}

export function readLayers({ file, overrides, env, cwd, mistakes }: Sources): Layers {
  const referred = new Set<string>();
  const readText = ({ text, path, base, placeOfLine }: Text): Layer => {
    const template = createTemplate(text, env);
    for (const name of template.names) referred.add(name);
    const { value, faults, lineOf } = readYaml(template);
    for (const fault of faults) {
      const where = [...path, ...fault.path];
      if (value === undefined) mistakes.addFatal(placeOfLine(fault.line), where, fault.text);
      else mistakes.add(placeOfLine(fault.line), where, fault.text);
    }
    const place = (whole: Path) => placeOfLine(lineOf(whole.slice(path.length)));
    return { path, value, base, place, expand: template.expand };
  };
  const over = overrides.map(({ path, variable, text }) => {
    const place = () => ({ source: variable });
    if (path.length === 1 && NAMED.some(name => name === path[0])) {
      return readText({ text, path, base: cwd, placeOfLine: place });
    }
    return { path, value: text, base: cwd, place, expand: literally };
  });
  if (file === undefined) return { layers: [...over, emptyLayer(cwd)], referred };
  const placeOfLine = (line: number) => ({ source: file.name, line });
  const bottom = readText({ text: file.text, path: [], base: dirname(file.path), placeOfLine });
  return { layers: [...over, bottom], referred };
}

/** In place of a file: everything has its default, and relative paths start from the working directory. */
function emptyLayer(cwd: string): Layer {
  const place = () => ({ source: 'configuration' });
  return { path: [], value: null, base: cwd, place, expand: literally };
}

function literally(text: string): Expansion {
  return { text };
}
