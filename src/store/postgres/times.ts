/**
 * The database's clock decides; a node's own may be wrong. What a node writes is put into the database's time,
 * and what it is to wait for is put back into its own. Small differences are no difference: they come from
 * measuring, and times should come back as they were given.
 */

/** Milliseconds of difference that count, and by which it must have changed to be taken anew. */
const NOTICEABLE_MS = 250;

export interface Times {
  /** The database's clock was read between two moments by the node's; nothing is learnt if they are far apart. */
  observe(database: number, before: number, after: number): void;
  toDatabase(node: number): number;
  toNode(database: number): number;
}

export function createTimes(): Times {
  let skew = 0;
  return {
    observe(database, before, after) {
      const measured = database - (before + after) / 2;
      if (after - before > NOTICEABLE_MS || Math.abs(measured - skew) <= NOTICEABLE_MS) return;
      skew = Math.abs(measured) <= NOTICEABLE_MS ? 0 : measured;
    },
    toDatabase: node => node + skew,
    toNode: database => database - skew,
  };
}
