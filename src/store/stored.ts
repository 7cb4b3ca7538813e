/**
 * A delivery with everything that a store keeps of it, as it goes from one store to another.
 */
import type { Sealed } from './seal.ts';
import type { AttemptTrigger, DeliveryRecord, NewBody } from './store.ts';

export interface StoredDelivery extends DeliveryRecord {
  /** Its place in the store that it comes from: whole, and growing. */
  readonly position: number;
  readonly sealed?: Sealed;
  readonly body: NewBody;
  /** Attempts of this round that count. */
  readonly counted: number;
  /** Of the attempts of this round. */
  readonly trigger: AttemptTrigger;
}
