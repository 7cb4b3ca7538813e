/**
 * What a reference to a run says: which one, and by which claim of which owner it is held. A run that was freed
 * and then claimed again is held anew, and old references to it no longer do anything.
 */
import type { RunRef } from '../runs.ts';
import type { Columns } from './given.ts';

export interface RunHold {
  /** The run id. */
  readonly id: string;
  readonly owner: number;
  /** The number of the claim. */
  readonly claim: number;
}

const SEPARATOR = ':';

export function runRefOf({ id, owner, claim }: RunHold): RunRef {
  return [id, owner, claim].join(SEPARATOR);
}

export function runHoldOf(ref: RunRef): RunHold {
  const [id, owner, claim] = String(ref).split(SEPARATOR);
  return { id: id!, owner: Number(owner), claim: Number(claim) };
}

/** Of the rows that a statement is given. */
export const HOLD: Columns = [
  ['id', 'uuid'],
  ['owner', 'int'],
  ['claim', 'int'],
];

/** A row of the queue that is held as given; written for the planner as it is for deliveries, in attempts.ts. */
export const HELD = 'q.id = ANY (ARRAY[g.id]) AND (q.owner = g.owner AND q.claim = g.claim) IS TRUE';

/** The values of `HOLD`. */
export function holdValues(holds: readonly RunHold[]): unknown[] {
  return [holds.map(({ id }) => id), holds.map(({ owner }) => owner), holds.map(({ claim }) => claim)];
}
