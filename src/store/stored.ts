/**
 * What a store keeps, with everything that belongs to it, as it goes from one store to another: deliveries, runs,
 * and the keys that stand for runs.
 */
import type { FinalRunState } from './runs.ts';
import type { Sealed } from './seal.ts';
import type { AttemptTrigger, DeliveryRecord, NewBody } from './store.ts';

interface Placed {
  /** Its place in the store that it comes from: whole, and growing. */
  readonly position: number;
}

export interface StoredDelivery extends DeliveryRecord, Placed {
  readonly sealed?: Sealed;
  /** For its other target, where it has one. */
  readonly otherSealed?: Sealed;
  readonly body: NewBody;
  /** Attempts of this round that count. */
  readonly counted: number;
  /** Of the attempts of this round. */
  readonly trigger: AttemptTrigger;
}

interface StoredRun extends Placed {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  readonly createdAt: number;
  /** Of its webhook. */
  readonly target?: string;
  readonly starts: number;
  /** When it was last begun. */
  readonly startedAt?: number;
}

/** One that has not ended, and has no owner. */
export interface StoredWaitingRun extends StoredRun {
  /** It is to be. */
  readonly cancelled: boolean;
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly headers: Sealed;
  /** What is confidential of its webhook; of the same key as the headers. */
  readonly sealed?: Sealed;
  readonly body?: NewBody;
}

export interface StoredEndedRun extends StoredRun {
  readonly state: FinalRunState;
  readonly statusCode: number;
  readonly error?: string;
  readonly endedAt: number;
  /** Absent where its delivery has it. */
  readonly result?: NewBody;
}

/** A key that a caller chose, and the run that it stands for, which may be deleted already. */
export interface StoredKey extends Placed {
  readonly projectId: string;
  readonly key: string;
  readonly runId: string;
  readonly fingerprint: Uint8Array;
  readonly madeAt: number;
}

/** The parts of a store that are moved one after the other, each in the order of its positions. */
export interface Stored {
  /** Deliveries. */
  readonly pending: StoredDelivery;
  readonly settled: StoredDelivery;
  /** Runs that have not ended. */
  readonly waiting: StoredWaitingRun;
  /** Runs that have ended: those with a result of their own, and those whose delivery has it. */
  readonly kept: StoredEndedRun;
  readonly delivered: StoredEndedRun;
  readonly keys: StoredKey;
}

export type Part = keyof Stored;
