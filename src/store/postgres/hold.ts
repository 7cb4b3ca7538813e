/**
 * What a reference to a delivery says: which one, and by which of this node's claims it is held. A delivery
 * that was taken over and then claimed again by the same node is held anew, and old references to it no longer
 * do anything.
 */
import type { DeliveryRef } from '../store.ts';

export interface Hold {
  /** The run id. */
  readonly id: string;
  /** The number of the claim; 0 for what this node inserted. */
  readonly claim: number;
}

export const INSERTED = 0;

const SEPARATOR = ':';

export function refOf({ id, claim }: Hold): DeliveryRef {
  return claim === INSERTED ? id : `${id}${SEPARATOR}${claim}`;
}

export function holdOf(ref: DeliveryRef): Hold {
  const [id, claim] = String(ref).split(SEPARATOR);
  return { id: id!, claim: claim === undefined ? INSERTED : Number(claim) };
}
