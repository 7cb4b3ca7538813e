/**
 * Times, durations and counts as people read them.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something took: `0.4 ms`, `12 ms`, `1.25 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1) return `${trimmed(ms, 2)} ms`;
  if (ms < 10) return `${trimmed(ms, 1)} ms`;
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${trimmed(ms / SECOND, 2)} s`;
  if (ms < MINUTE) return `${trimmed(ms / SECOND, 1)} s`;
  return span(ms);
}

/** A longer time in its two largest units: `45 s`, `2 min 5 s`, `3 h 10 min`, `2 d 4 h`. */
export function span(ms: number): string {
  const units = [
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'min'],
    [SECOND, 's'],
  ] as const;
  const first = units.findIndex(([length]) => ms >= length);
  if (first === -1) return '0 s';
  const [length, name] = units[first]!;
  const next = units[first + 1];
  const rest = next === undefined ? 0 : Math.floor((ms % length) / next[0]);
  return `${Math.floor(ms / length)} ${name}${rest > 0 ? ` ${rest} ${next![1]}` : ''}`;
}

/** `just now`, `5 min ago`. */
export function ago(at: number, now: number): string {
  const passed = now - at;
  if (passed < 5 * SECOND) return 'just now';
  if (passed < MINUTE) return `${Math.floor(passed / SECOND)} s ago`;
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min ago`;
  if (passed < DAY) return `${Math.floor(passed / HOUR)} h ago`;
  return `${Math.floor(passed / DAY)} d ago`;
}

/** A whole number, or a large one in short: `1,204`, `12.5 k`, `3.1 M`. */
export function count(value: number): string {
  if (value < 10_000)
    return Math.round(value * 10) % 10 === 0 || value >= 100 ? grouped(value) : trimmed(value, 1);
  if (value < 1_000_000) return `${trimmed(value / 1000, 1)} k`;
  return `${trimmed(value / 1_000_000, 1)} M`;
}

export function grouped(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** `99.95 %`; all of it only where it is all of it. */
export function percent(ratio: number): string {
  if (ratio === 1 || ratio === 0) return `${ratio * 100} %`;
  return `${trimmed(Math.min(99.99, Math.max(0.01, ratio * 100)), 2)} %`;
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${trimmed(size / 1024, 1)} KiB`;
  return `${trimmed(size / 1024 / 1024, 1)} MiB`;
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}
