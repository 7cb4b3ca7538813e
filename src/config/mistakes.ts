/**
 * What is wrong with a configuration, gathered so that the operator sees all of it at once, each with its
 * place and what is expected. A mistake never shows a value: any value may be a secret in the wrong place.
 */
import { UsageError } from '../errors.ts';

/** Keys from the root of the configuration. */
export type Path = readonly (string | number)[];

/** A file and line, or a variable (which has no line and comes after the file). */
export interface Place {
  readonly source: string;
  readonly line?: number;
}

interface Mistake {
  readonly place: Place;
  readonly text: string;
}

export class Mistakes {
  readonly #all: Mistake[] = [];
  #fatal = false;

  add(place: Place, path: Path, text: string): void {
    this.#all.push({ place, text: tell(place, path, text) });
  }

  /** One after which checking what is left would find mistakes that are none. */
  addFatal(place: Place, path: Path, text: string): void {
    this.add(place, path, text);
    this.#fatal = true;
  }

  throwIfFatal(): void {
    if (this.#fatal) this.throwIfAny();
  }

  throwIfAny(): void {
    if (this.#all.length === 0) return;
    const lineOf = ({ place }: Mistake) => place.line ?? Number.MAX_SAFE_INTEGER;
    const ordered = this.#all.toSorted((a, b) => lineOf(a) - lineOf(b));
    throw new UsageError([...new Set(ordered.map(({ text }) => text))].join('\n'));
  }
}

/** `file:line: key.path: text`, the form of mistakes and warnings. */
export function tell({ source, line }: Place, path: Path, text: string): string {
  const where = line === undefined ? source : `${source}:${line}`;
  return [where, formatPath(path), text].filter(part => part !== '').join(': ');
}

function formatPath(path: Path): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

/** The known name that was most likely meant, if one is close. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name);
  const [best] = known
    .map(candidate => ({ candidate, distance: distance(wanted, plain(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance);
  return best && best.distance <= Math.max(1, Math.floor(wanted.length / 3)) ? best.candidate : undefined;
}

// attempt_timeout and attempt-timeout are as near to attemptTimeout as can be.
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/** Levenshtein's distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1)!;
}
