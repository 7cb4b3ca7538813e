/**
 * What the rest of the program knows of a store's runs: asynchronous calls, which go in durably before they
 * are carried out.
 *
 * A run is `queued` until a node has begun it, then `running`, and ends once as `succeeded`, `failed` or
 * `cancelled`. Until it ends it is either without an owner, waiting to be claimed, or owned by the node that
 * carries it out. A start is counted before the app is called. The store frees the runs of owners that are
 * gone, or that give up what they own, as it does with deliveries: they are queued again, and starts that were
 * counted stay counted. How often a run may be started is for its next owner to say.
 *
 * A run that is to be cancelled is marked. It is not begun any more, and its owner, or else the next claim,
 * ends it. So every end comes by the same way, and where the run has a webhook, its delivery is made in the
 * same transaction as the end.
 */
import type {
  Body,
  Confidential,
  DeliveryRef,
  DeliveryState,
  FailureReason,
  NewBody,
  NewDelivery,
} from './store.ts';

export type RunState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type FinalRunState = Exclude<RunState, 'queued' | 'running'>;

/** Names a run inside one store, as it was claimed; opaque to everyone else. */
export type RunRef = number | string;

/** How long a key stands for its run. */
export const IDEMPOTENCY_MS = 86_400_000;

/** The file of a request's body is called by its run id and this. */
export const REQUEST_SUFFIX = '.request';

/** The call that an app will get. */
export interface RunRequest {
  readonly method: string;
  /** Begins with `/`. */
  readonly path: string;
  /** Without its `?`; absent where there is no `?`. */
  readonly query?: string;
  /** Flat list of names and values. Never readable at rest: they may hold credentials. */
  readonly headers: readonly string[];
}

export interface RunWebhook {
  /** Absolute URL, without user information. */
  readonly target: string;
  readonly confidential: Confidential;
}

/** A key that its caller chose, so that the same call can be sent twice and runs once. */
export interface Idempotency {
  readonly key: string;
  /** A digest of the call that came with it. */
  readonly fingerprint: Uint8Array;
}

export interface NewRun extends RunRequest {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  readonly createdAt: number;
  /** Absent where the request has none. On disk already (fsynced) where it is a file. */
  readonly body?: NewBody;
  readonly webhook?: RunWebhook;
  readonly idempotency?: Idempotency;
}

/**
 * What became of a new run. One of the same project with the same key, within `IDEMPOTENCY_MS`, is not stored
 * again: it is `repeated` where the call is the same, and a `conflict` where it is another. The store removes
 * the body that came with it.
 */
export type RunInsertion =
  | { readonly outcome: 'inserted' }
  | { readonly outcome: 'repeated' | 'conflict'; readonly runId: string };

/** An app whose runs are wanted. */
export interface WantedRuns {
  readonly projectId: string;
  readonly app: string;
  /** How many may be owned at once. */
  readonly limit: number;
  /** By this node; otherwise by all nodes together. */
  readonly each: boolean;
}

export interface ClaimedRun extends RunRequest {
  readonly ref: RunRef;
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  readonly createdAt: number;
  /** Starts that were counted before. */
  readonly starts: number;
  /** It is to be ended, not begun. */
  readonly cancelled: boolean;
  /** What is sealed in it cannot be opened: its headers and its secret are missing, and it is to be ended. */
  readonly unreadable: boolean;
  readonly webhook?: RunWebhook;
}

/** `cancelled`: it is to be ended instead. `lost`: it is no longer this node's. */
export type RunBeginning = 'begun' | 'cancelled' | 'lost';

export interface RunEnd {
  readonly state: FinalRunState;
  readonly endedAt: number;
  /** Of the app's answer, or of the problem that takes its place. */
  readonly statusCode: number;
  /** The type of the error that takes the place of a result. */
  readonly error?: string;
}

/** What a run ends with: its answer, kept with it, or the delivery that has it. */
export type RunOutcome = { readonly result: NewBody } | { readonly delivery: NewDelivery };

/** `delivery` is given where one was made. */
export interface RunEnded {
  readonly delivery?: DeliveryRef;
}

/** The delivery of a run that has ended. */
export interface RunDelivery {
  readonly state: DeliveryState;
  readonly reason?: FailureReason;
  /** Attempts of all rounds that have ended. */
  readonly attempts: number;
}

export interface RunRecord {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  /** A run that is marked before it was begun is `cancelled`, though its end may still have to be written. */
  readonly state: RunState;
  readonly createdAt: number;
  readonly starts: number;
  /** When it was last begun. */
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly statusCode?: number;
  readonly error?: string;
  /** It runs, and is to be cancelled. */
  readonly cancelling: boolean;
  /** Where it has a webhook. */
  readonly target?: string;
  readonly delivery?: RunDelivery;
}

export interface RunFilter {
  /** All projects where absent. */
  readonly projectId?: string;
  readonly app?: string;
  readonly state?: RunState;
}

export interface RunPage {
  /** Only runs older than this one. */
  readonly before?: string;
  readonly limit: number;
}

export interface RunStore {
  /** Resolves once the run is durable. It has no owner then. */
  insert(run: NewRun): Promise<RunInsertion>;

  /**
   * Takes runs without an owner: of each wanted app the oldest, as many as its limit has room for, and, whatever
   * the limit, those of wanted apps that are to be cancelled.
   */
  claim(wanted: readonly WantedRuns[]): Promise<ClaimedRun[]>;
  /** Takes up to `limit` runs without an owner that came before `before` and whose app is none of these. */
  claimStrays(
    known: readonly Pick<WantedRuns, 'projectId' | 'app'>[],
    before: number,
    limit: number,
  ): Promise<ClaimedRun[]>;
  /** The body of the request; undefined where there is none. */
  body(ref: RunRef): Promise<Body | undefined>;
  /** Counts a start before the app is called. */
  begin(ref: RunRef, startedAt: number): Promise<RunBeginning>;
  /** Gives a run up that reached no app; a start that was counted is taken back. False: it is no longer this node's. */
  withdraw(ref: RunRef): Promise<boolean>;
  /** Ends a run that this node owns, begun or not. Undefined: it is no longer this node's, and nothing is done. */
  end(ref: RunRef, end: RunEnd, outcome: RunOutcome): Promise<RunEnded | undefined>;

  /** Marks a run to be cancelled; false where the project has none such that has not ended. */
  cancel(projectId: string, runId: string): Promise<boolean>;
  /** Those that this node owns and that are marked. */
  toCancel(): Promise<RunRef[]>;

  /** Of any project where that is undefined. */
  find(projectId: string | undefined, runId: string): Promise<RunRecord | undefined>;
  /** What it ended with, with or without a delivery; undefined where that is not there, or not any more. */
  result(projectId: string, runId: string): Promise<Body | undefined>;
  /** Newest first. */
  list(filter: RunFilter, page: RunPage): Promise<RunRecord[]>;
  /** When the oldest run that is queued was made; undefined where none is. */
  oldestQueuedAt(): Promise<number | undefined>;
  /** Which of these have ended, or are not there. */
  ended(runIds: readonly string[]): Promise<string[]>;
  /** Deletes up to `limit` runs that ended before `before`, and keys that stand for nothing any more; tells how many runs. */
  prune(before: number, limit: number): Promise<number>;
}
