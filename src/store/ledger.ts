/**
 * What people ask of deliveries and do to them by hand: lists, one with all there is to know of it, a new round,
 * an end. None of it is on the way of a call.
 *
 * Lists go by run id, newest first. Each look at the store reads a bounded number of rows, however many there
 * are and whatever is asked for: a page may therefore be short, even empty, and still have a next one.
 *
 * A new round by hand makes a delivery that has ended pending again, without an owner, with attempts counted
 * from 0 and the trigger `manual`. Many at once are the work of a job, which is carried out in steps by the node
 * that owns it and goes on elsewhere when that dies.
 */
import type { Idempotency } from './runs.ts';
import type { Body, DeliveryRecord, DeliveryState, FailureReason } from './store.ts';

export interface DeliveryFilter {
  /** All projects where absent. */
  readonly projectId?: string;
  readonly app?: string;
  readonly state?: DeliveryState;
  readonly reason?: FailureReason;
  /** Host of its own target as in the URL, with the port where that is not the scheme's own. */
  readonly host?: string;
  /** What the receiver answered last: 503, or from 500 to 599 for all of a class. */
  readonly status?: { readonly from: number; readonly to: number };
  /** By the time in the run id: from the first, before the second. */
  readonly since?: number;
  readonly until?: number;
}

export interface LedgerPage {
  /** Only deliveries of runs older than this one. */
  readonly before?: string;
  /** At most so many. */
  readonly limit: number;
}

type Told = 'runId' | 'projectId' | 'app' | 'statusCode' | 'createdAt' | 'state' | 'reason' | 'round';

export interface DeliverySummary extends Pick<DeliveryRecord, Told | 'dueAt' | 'settledAt'> {
  /** Where it goes, or went last. */
  readonly target: string;
  /** Attempts of all rounds that have ended. */
  readonly attempts: number;
  /** Of the last of them. */
  readonly lastStatus?: number;
  readonly lastError?: string;
}

export interface DeliveryList {
  readonly deliveries: readonly DeliverySummary[];
  /** Where to go on; absent where there is nothing more. */
  readonly next?: string;
}

export interface RunIdList {
  readonly runIds: readonly string[];
  readonly next?: string;
}

/** Another place for a round by hand. */
export interface OtherTarget {
  /** Absolute URL, without user information. */
  readonly target: string;
  /** In place of that of the call, which must not go elsewhere. The secret stays. */
  readonly authorization?: string;
}

export interface Redelivery {
  readonly runId: string;
  /** Of any project where absent. */
  readonly projectId?: string;
  readonly at: number;
  /** Absent: the delivery's own, whatever an earlier round had. */
  readonly to?: OtherTarget;
  readonly idempotency?: Idempotency;
}

/**
 * `repeated`: the key came with the same redelivery before, and made the round told. `conflict`: it came with
 * another. `unreadable`: what is sealed cannot be opened, and so not be sealed anew for another target.
 */
export type Redelivered =
  | { readonly outcome: 'redelivered' | 'repeated'; readonly round: number }
  | { readonly outcome: 'pending' | 'not_found' | 'conflict' | 'unreadable' };

export type Cancelled = 'cancelled' | 'settled' | 'not_found';

/** The oldest is by the time that its call was answered. */
export interface PendingOf {
  readonly pending: number;
  readonly oldestAt?: number;
}

export type JobState = 'running' | 'done';

/** Many deliveries that are to have a new round. */
export interface Job {
  readonly id: string;
  /** Who asked for it; all projects where absent. */
  readonly projectId?: string;
  readonly filter: DeliveryFilter;
  readonly createdAt: number;
  readonly state: JobState;
  /** How many there were when it began. */
  readonly total: number;
  /** How many of them have been looked at, and of these have a new round. */
  readonly seen: number;
  readonly redelivered: number;
  readonly endedAt?: number;
}

export type NewJob = Pick<Job, 'id' | 'projectId' | 'filter' | 'createdAt' | 'total'> & {
  readonly idempotency?: Idempotency;
};

/** A job as a node holds it that carries it out. */
export interface ClaimedJob extends Job {
  readonly ref: string;
  /** It goes on with runs older than this one. */
  readonly before?: string;
}

export interface JobStep {
  readonly runIds: readonly string[];
  /** Where the next goes on; absent: this was the last. */
  readonly next?: string;
  readonly at: number;
}

export interface Ledger {
  list(filter: DeliveryFilter, page: LedgerPage): Promise<DeliveryList>;
  /** The same without what there is to tell of each. */
  runIds(filter: DeliveryFilter, page: LedgerPage): Promise<RunIdList>;
  /** Those of these that there are, in no order. */
  summaries(runIds: readonly string[]): Promise<DeliverySummary[]>;
  /** What is sent, and is kept for as long as the delivery is. */
  content(runId: string): Promise<Body | undefined>;
  pendingOf(projectId?: string): Promise<PendingOf>;

  redeliver(redelivery: Redelivery): Promise<Redelivered>;
  /** Ends a pending delivery. An attempt under way is recorded with the error `cancelled`. */
  cancel(runId: string, at: number, projectId?: string): Promise<Cancelled>;

  /** The job; where its key came before, the one that it came with, or `conflict`. */
  addJob(job: NewJob): Promise<Job | 'conflict'>;
  findJob(id: string, projectId?: string): Promise<Job | undefined>;
  /** Takes a running job that nobody owns; owners that are gone are found as those of deliveries are. */
  claimJob(): Promise<ClaimedJob | undefined>;
  /** Gives those that have ended a new round, and goes on. Undefined: it is no longer this node's. */
  stepJob(ref: string, step: JobStep): Promise<Job | undefined>;

  /**
   * Calls `listener` with the runs whose delivery has changed, soon after it has, wherever that was. That is
   * complete once there is a function, which ends it. While nobody listens anywhere, it costs nothing. No runs at
   * all: so much has changed, or may have been missed, that everything is to be looked at again.
   */
  follow(listener: (runIds: readonly string[]) => void): Promise<() => void>;
}

/** Of the attempt's or the delivery's target: how a host is named in filters. */
export function hostOf(target: string): string {
  return new URL(target).host;
}
