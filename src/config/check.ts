/**
 * Checks one map of the configuration against its table of keys. Every key is checked for itself, so that a
 * mistake in one hides no other.
 */
import { nearest, type Path } from './mistakes.ts';
import type { Block, Checked } from './schema.ts';
import type { Settings } from './settings.ts';

/**
 * The values of the keys that are right, with defaults for those not given; undefined where there is no map
 * at `path`. `others` are keys that belong there and are checked by someone else.
 */
export function checkBlock<B extends Block>(
  settings: Settings,
  path: Path,
  block: B,
  others: readonly string[] = [],
): Partial<Checked<B>> | undefined {
  const map = settings.map(path);
  if (map === undefined) return undefined;
  const known = [...Object.keys(block), ...others];
  for (const key of Object.keys(map)) {
    if (known.includes(key)) continue;
    const meant = nearest(key, known);
    settings.mistake([...path, key], `is not a known key${meant ? ` (did you mean ${meant}?)` : ''}`);
  }
  const checked: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries(block)) {
    const read = settings.read([...path, key]);
    if (read === undefined) continue;
    const { data, error } = schema.safeParse(read.value);
    if (data !== undefined) checked[key] = data;
    for (const issue of error?.issues ?? []) report(settings, [...path, key, ...issue.path], issue.message);
  }
  return checked as Partial<Checked<B>>;
}

/** Taken for whole: what misses a value has a mistake, and loading ends before it is used. */
export function whole<T extends object>(checked: Partial<T>): T {
  return checked as T;
}

function report(settings: Settings, path: readonly PropertyKey[], message: string): void {
  settings.mistake(
    path.map(key => (typeof key === 'number' ? key : String(key))),
    message,
  );
}
