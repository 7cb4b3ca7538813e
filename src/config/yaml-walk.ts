/**
 * The walk from YAML nodes to plain data: aliases and merge keys resolved, keys given twice found, and the
 * line of every key and item noted on the way. Maps become objects without a prototype, so that no key of a
 * file can mean anything but itself.
 */
import { type Alias, type Document, isAlias, isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml';
import type { Path } from './mistakes.ts';

export interface YamlFault {
  readonly line: number;
  readonly path: Path;
  readonly text: string;
}

interface YamlSource {
  readonly document: Document;
  readonly lineAt: (offset: number) => number;
  /** A key as it was written. */
  readonly restore: (key: string) => string;
}

type PlainMap = Record<string, unknown>;

export class YamlWalk {
  readonly faults: YamlFault[] = [];
  readonly #source: YamlSource;
  readonly #lines = new Map<string, number>();
  /** The nodes around the present one: an alias to one of them would never end. */
  readonly #open = new Set<unknown>();

  constructor(source: YamlSource) {
    this.#source = source;
  }

  /** The line of the key or item, or of the nearest one around it. */
  lineOf(path: Path): number {
    for (let length = path.length; length > 0; length -= 1) {
      const line = this.#lines.get(pathKey(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  }

  value(node: unknown, path: Path): unknown {
    this.#open.add(node);
    const result = this.#convert(node, path);
    this.#open.delete(node);
    return result;
  }

  #convert(node: unknown, path: Path): unknown {
    if (isScalar(node)) return node.value;
    if (isAlias(node)) return this.#alias(node, path);
    if (isMap(node)) return this.#map(node, path);
    if (!isSeq(node)) return null;
    return node.items.map((item, index) => {
      this.#lines.set(pathKey([...path, index]), this.#line(item));
      return this.value(item, [...path, index]);
    });
  }

  #alias(alias: Alias, path: Path): unknown {
    const target = alias.resolve(this.#source.document);
    if (target !== undefined && !this.#open.has(target)) return this.value(target, path);
    const reason = target === undefined ? 'names no anchor set before it' : 'stands inside its own anchor';
    this.#fault(alias, path, `the alias ${reason}`);
    return null;
  }

  #map(node: YAMLMap, path: Path): PlainMap {
    const result: PlainMap = Object.create(null);
    const merges: unknown[] = [];
    for (const { key, value } of node.items) {
      // The parser makes a symbol of the key `<<`, and numbers of keys like 007, which are names here.
      const { value: name, source = '' } = isScalar(key) ? key : {};
      const written = typeof name === 'string' ? this.#source.restore(name) : source;
      if (typeof name === 'symbol') merges.push(value);
      else if (written === '') this.#fault(key, path, 'a key must be text');
      else this.#entry(result, [...path, written], key, value);
    }
    for (const merge of merges) this.#merge(result, merge, path);
    return result;
  }

  #entry(result: PlainMap, path: Path, key: unknown, value: unknown): void {
    const name = String(path.at(-1));
    if (name in result) {
      this.#fault(key, path, `is given twice, first on line ${this.lineOf(path)}`);
      return;
    }
    this.#lines.set(pathKey(path), this.#line(key));
    result[name] = this.value(value, path);
  }

  /** A key of the map itself wins over a merged one, an earlier merge over a later; so do their lines. */
  #merge(result: PlainMap, node: unknown, path: Path): void {
    const before = [...this.#lines];
    const maps = [this.value(node, path)].flat();
    for (const map of maps) {
      if (typeof map !== 'object' || map === null) this.#fault(node, path, '<< merges maps only');
      else for (const [name, value] of Object.entries(map)) if (!(name in result)) result[name] = value;
    }
    for (const [key, line] of before) this.#lines.set(key, line);
  }

  #fault(node: unknown, path: Path, text: string): void {
    this.faults.push({ line: this.#line(node), path, text });
  }

  #line(node: unknown): number {
    return this.#source.lineAt((node as Node | null)?.range?.[0] ?? 0);
  }
}

function pathKey(path: Path): string {
  return JSON.stringify(path);
}
