/**
 * What was given, key by key: the first layer that covers a path has its value, its place for mistakes and
 * warnings, and the folder that relative paths in it start from. References to variables are resolved when a value is
 * read, so that one in a value which the environment overrides does not matter.
 */
import { resolve } from 'node:path';
import type { Layer } from './layers.ts';
import { type Mistakes, type Path, type Place, tell } from './mistakes.ts';

export type PlainMap = Readonly<Record<string, unknown>>;

interface SettingsParts {
  readonly layers: readonly Layer[];
  readonly mistakes: Mistakes;
}

export class Settings {
  /** In the form of mistakes. */
  readonly warnings: string[] = [];
  readonly #layers: readonly Layer[];
  readonly #mistakes: Mistakes;

  constructor({ layers, mistakes }: SettingsParts) {
    this.#layers = layers;
    this.#mistakes = mistakes;
  }

  /** An absolute path, from one given in the value at `path`. */
  resolve(path: Path, relative: string): string {
    return resolve(this.#layer(path).base, relative);
  }

  has(path: Path): boolean {
    return this.#raw(path) !== undefined;
  }

  /** `near` has the place to name, where `path` itself is not given. */
  mistake(path: Path, text: string, near = path): void {
    this.#mistakes.add(this.#place(near), path, text);
  }

  warn(path: Path, text: string, near = path): void {
    this.warnings.push(tell(this.#place(near), path, text));
  }

  /** A map, empty where nothing is given there; undefined, and a mistake, where something else is. */
  map(path: Path): PlainMap | undefined {
    const raw = this.#raw(path) ?? {};
    if (isMap(raw)) return raw;
    this.mistake(path, 'expected a map of keys and values');
    return undefined;
  }

  /** The value with its references resolved; nothing, and a mistake, where that cannot be done. */
  read(path: Path): { readonly value: unknown } | undefined {
    const raw = this.#raw(path);
    if (raw === null) {
      this.mistake(path, 'has no value; give one or remove the key');
      return undefined;
    }
    let sound = true;
    const value = mapStrings(raw, path, (text, at) => {
      const expansion = this.#layer(path).expand(text);
      if ('text' in expansion) return expansion.text;
      this.mistake(at, expansion.fault);
      sound = false;
      return text;
    });
    return sound ? { value } : undefined;
  }

  #place(path: Path): Place {
    return this.#layer(path).place(path);
  }

  #layer(path: Path): Layer {
    return this.#layers.find(layer => layer.path.every((key, index) => key === path[index]))!;
  }

  #raw(path: Path): unknown {
    const layer = this.#layer(path);
    return path
      .slice(layer.path.length)
      .reduce<unknown>((value, key) => (isMap(value) ? value[key] : undefined), layer.value);
  }
}

function isMap(value: unknown): value is PlainMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapStrings(value: unknown, path: Path, change: (text: string, path: Path) => string): unknown {
  if (typeof value === 'string') return change(value, path);
  if (Array.isArray(value)) return value.map((item, index) => mapStrings(item, [...path, index], change));
  if (!isMap(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, item]) => [key, mapStrings(item, [...path, key], change)]));
}
