/**
 * What the rest of the program knows of a store: deliveries go in once and durably, attempts are counted
 * before they are sent, outcomes are written by the node that owns the delivery.
 *
 * A delivery is `pending` until it ends as `delivered`, `failed` or `cancelled`. While pending it is either
 * owned by the node that will send it, or unowned and waiting to be claimed. A node that dies leaves owned
 * deliveries behind; `recover` notes the attempt that was cut off and makes them claimable again.
 *
 * A node owns what it owns for as long as its tenure lasts. Where nodes share a store, each shows again and
 * again that it lives; one that could not for too long has lost its tenure, and others may have taken over.
 * An attempt may be sent only in the tenure in which it was counted.
 */
import type { Ledger } from './ledger.ts';
import type { RunStore } from './runs.ts';
import type { StatsStore } from './stats.ts';

export type DeliveryState = 'pending' | 'delivered' | 'failed' | 'cancelled';
export type FailureReason = 'exhausted' | 'rejected' | 'blocked';
/** The first one included. */
export const ATTEMPTS_PER_ROUND = 3;

export type AttemptTrigger = 'automatic' | 'manual';

/** Names a delivery inside one store, as it was inserted or claimed; opaque to everyone else. */
export type DeliveryRef = number | string;

/** The bytes of a delivery: in memory, or, when large, in a file that the store takes over. */
export type NewBody = { readonly bytes: Uint8Array } | { readonly file: string; readonly size: number };

/** A body as a store gives it back; it may come in pieces, from its beginning each time that is asked for. */
export type Body = NewBody | { readonly size: number; readonly pieces: () => AsyncIterable<Uint8Array> };

/** What a delivery carries that must never be readable at rest. */
export interface Confidential {
  /** The bytes of `X-Webhook-Secret`. */
  readonly secret?: Uint8Array;
  /** The value of the delivery's own `Authorization` header, from the target's `user:password@`. */
  readonly authorization?: string;
}

export interface NewDelivery {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  /** Absolute URL, without user information. */
  readonly target: string;
  /** What the caller got. */
  readonly statusCode: number;
  /** When the answer was complete, in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly confidential: Confidential;
  /** The trace that the call belongs to (W3C Trace Context), where it has one. */
  readonly traceparent?: string;
  /** On disk already (fsynced) where it is a file. */
  readonly body: NewBody;
  /** True when the inserting node sends it itself; otherwise it waits for a claim. */
  readonly owned: boolean;
  /** When the first attempt begins, where it follows at once: it is counted along with the insert. */
  readonly begunAt?: number;
}

/** A delivery as a dispatcher holds it while it is pending. */
export interface PendingDelivery {
  readonly ref: DeliveryRef;
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  readonly target: string;
  readonly createdAt: number;
  readonly confidential: Confidential;
  readonly traceparent?: string;
  /** Rounds begin at 1; a redelivery by hand starts the next. */
  readonly round: number;
  /** Attempts of this round that count. */
  readonly attempts: number;
  readonly trigger: AttemptTrigger;
  /** Not before this time, in milliseconds since the epoch. */
  readonly dueAt: number;
}

export interface AttemptTimings {
  /** From due to sent. */
  readonly queueMs: number;
  readonly dnsMs?: number;
  readonly connectMs?: number;
  readonly tlsMs?: number;
  readonly firstByteMs?: number;
  readonly totalMs: number;
}

export interface AttemptResult {
  /** 1 to 3 within the round. */
  readonly number: number;
  readonly startedAt: number;
  readonly timings: AttemptTimings;
  /** The receiver's status, where there was one. */
  readonly status?: number;
  /** Typed error code, where there was no answer. */
  readonly error?: string;
  /** Of the receiver's answer: text that a store keeps as it is. */
  readonly headers?: string;
  /** The beginning of the receiver's answer. */
  readonly excerpt?: Uint8Array;
}

/** What becomes of a delivery after an attempt. */
export type Next =
  | { readonly state: 'pending'; readonly dueAt: number }
  | { readonly state: 'delivered' }
  | { readonly state: 'failed'; readonly reason: FailureReason };

export interface AttemptRecord extends AttemptResult {
  readonly round: number;
  readonly trigger: AttemptTrigger;
  /** Where it went, if not to the delivery's own target. */
  readonly target?: string;
}

export interface DeliveryRecord {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  readonly target: string;
  readonly statusCode: number;
  readonly createdAt: number;
  readonly state: DeliveryState;
  readonly reason?: FailureReason;
  readonly round: number;
  /** Where its present round goes, or its last one went, if not to its own target. */
  readonly otherTarget?: string;
  readonly traceparent?: string;
  /** Whether it has a secret to be signed with; absent where what is sealed cannot be opened. */
  readonly signed?: boolean;
  readonly attempts: readonly AttemptRecord[];
  /** When the next attempt is due, while pending. */
  readonly dueAt?: number;
  /** When it left `pending`. */
  readonly settledAt?: number;
}

export interface Backlog {
  /** Pending deliveries, and runs that have not ended, of each project that has any. */
  readonly pending: ReadonlyMap<string, number>;
}

export interface Store {
  /** Asynchronous calls. What is said below of ownership (`recover`, `release`, `watch`) is said of them too. */
  readonly runs: RunStore;
  /** What people ask of deliveries, and do to them. */
  readonly ledger: Ledger;
  readonly stats: StatsStore;

  /** Opens, migrates and locks. Throws a StartError with a message for the operator. */
  open(): Promise<void>;
  /** Writes what is queued, then closes. */
  close(): Promise<void>;

  /** False while writes fail; they are kept and tried again until they succeed. */
  readonly available: boolean;

  /**
   * Undefined while this node cannot be sure that it owns what it owns. The number is the same for as long as
   * it has been sure without a gap.
   */
  readonly tenure: number | undefined;

  /** Resolves once the delivery is durable. */
  insert(delivery: NewDelivery): Promise<DeliveryRef>;
  /** Counts an attempt before it is sent. False: the delivery is no longer this node's to send. */
  beginAttempt(ref: DeliveryRef, startedAt: number): Promise<boolean>;
  /** Takes back an attempt that was counted and then not sent. False: the delivery is no longer this node's. */
  withdrawAttempt(ref: DeliveryRef): Promise<boolean>;
  /** Records how an attempt ended. False: the delivery is no longer this node's. */
  endAttempt(ref: DeliveryRef, attempt: AttemptResult, next: Next): Promise<boolean>;

  /** Frees what dead owners held, recording their unfinished attempts as `interrupted`; tells how many. */
  recover(): Promise<number>;
  /** Gives up all that this node owns, as `recover` does for the dead; tells how many. */
  release(): Promise<number>;
  /** Takes up to `limit` unowned deliveries, oldest first; fewer does not mean that there are no more. */
  claim(limit: number): Promise<PendingDelivery[]>;
  /**
   * Calls `listener` from now on whenever another node may have left deliveries to claim, and whenever the
   * tenure is there again after it was not.
   */
  watch(listener: () => void): void;

  body(ref: DeliveryRef): Promise<Body | undefined>;
  find(runId: string): Promise<DeliveryRecord | undefined>;
  backlog(): Promise<Backlog>;
  /** Deletes up to `limit` deliveries that settled before `before`; tells how many. */
  prune(before: number, limit: number): Promise<number>;
}
