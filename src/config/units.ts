/**
 * Durations and sizes as an operator writes them (`1h30m`, `16MiB`), to milliseconds and bytes and back.
 * Writing what was read gives the same value, in the largest units that fit.
 */

const DURATION_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

const BINARY_UNITS = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

const SIZE_UNITS: ReadonlyMap<string, number> = new Map([
  ...BINARY_UNITS,
  ['GB', 1e9],
  ['MB', 1e6],
  ['KB', 1e3],
  ['', 1],
]);

// Each unit at most once, the larger first: `1h30m`, never `30m1h` or `1h1h`.
const DURATION = /^(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/;
const SIZE = /^(\d+)([A-Za-z]*)$/;

/** Milliseconds, or undefined where the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const parts = DURATION.exec(text)?.slice(1);
  if (parts === undefined) return undefined;
  return safe(DURATION_UNITS.reduce((sum, [, ms], index) => sum + Number(parts[index] ?? 0) * ms, 0));
}

export function formatDuration(ms: number): string {
  let rest = ms;
  let text = '';
  for (const [unit, length] of DURATION_UNITS) {
    const count = Math.floor(rest / length);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * length;
  }
  return text === '' ? '0ms' : text;
}

/** Bytes, or undefined where the text is not a size. */
export function parseSize(text: string): number | undefined {
  const [, count, unit] = SIZE.exec(text) ?? [];
  const factor = SIZE_UNITS.get(unit ?? '');
  return count === undefined || factor === undefined ? undefined : safe(Number(count) * factor);
}

/** With a unit where one divides it evenly, otherwise the plain number of bytes. */
export function formatSize(bytes: number): string | number {
  const even = BINARY_UNITS.find(([, factor]) => bytes >= factor && bytes % factor === 0);
  return even === undefined ? bytes : `${bytes / even[1]}${even[0]}`;
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined;
}
