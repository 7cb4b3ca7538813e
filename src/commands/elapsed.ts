/**
 * Times as people read them.
 */

/** A span: in two units at most, and no finer than it matters. */
export function readableTime(span: number): string {
  const ms = Math.round(span);
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (ms < 1000) return `${ms} ms`;
  if (seconds < 10) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A moment, from ISO 8601 in UTC. */
export function readableDate(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')}Z`;
}
