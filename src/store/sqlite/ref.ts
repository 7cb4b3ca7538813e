/**
 * A delivery's reference has its round in it. So nothing happens through one of an earlier round, even where the
 * same node has the delivery again. In the first round it is the key alone.
 */
import type { DeliveryRef } from '../store.ts';

export interface HeldDelivery {
  readonly id: number;
  readonly round: number;
}

export function formatDeliveryRef({ id, round }: HeldDelivery): DeliveryRef {
  return round === 1 ? id : `${id}:${round}`;
}

export function parseDeliveryRef(ref: DeliveryRef): HeldDelivery {
  const [id, round = 1] = String(ref).split(':');
  return { id: Number(id), round: Number(round) };
}
