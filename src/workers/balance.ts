/**
 * Evens out connections. The kernel gives a new one to whichever worker comes first, callers keep theirs for
 * long, and a worker that is new has none: so one may end up with most of them, and with most of the calls.
 * Whoever has far more than its share tells some of its callers, with an answer, to come again on a new one.
 */

/** Beyond its share by this factor and number: less is not worth a caller's new connection. */
const FACTOR = 1.25;
const MARGIN = 4;

/** How many connections each of the workers is to close, by how many each has. */
export function surplusOf(connections: readonly number[]): number[] {
  const share = connections.reduce((sum, count) => sum + count, 0) / connections.length;
  return connections.map(count => (count > share * FACTOR + MARGIN ? Math.floor(count - share) : 0));
}
