/** How often a node shows that it lives, and when it no longer does. In milliseconds. */

export interface Lease {
  /** Between two beats. */
  readonly beat: number;
  /** For so long after a beat was sent, a node is sure that it is not taken for dead. */
  readonly valid: number;
  /** A node whose last beat is older is dead for the others. */
  readonly dead: number;
  /** Between two looks for dead nodes and for what there is to claim. */
  readonly look: number;
}

/** So what a dead node held is taken over within 5 seconds. */
export const LEASE: Lease = { beat: 1_000, valid: 3_000, dead: 4_000, look: 500 };
