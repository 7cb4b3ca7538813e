/**
 * What the main thread and the database's thread say to each other: batches of operations one way, one
 * answer per batch the other way. The bytes of a batch travel together in one buffer of its own, since a
 * cloned view would take its whole underlying buffer along.
 */
import type { Keyring } from '../seal.ts';
import type { AttemptResult, Backlog, DeliveryRecord, NewBody, Next, PendingDelivery } from '../store.ts';
import type { LedgerOperations } from './ledger/protocol.ts';
import type { HeldDelivery } from './ref.ts';
import type { RunOperations } from './runs/protocol.ts';
import type { StatsOperations } from './stats/protocol.ts';

interface Operations extends RunOperations, LedgerOperations, StatsOperations {
  /** The number of a node that shares this store, among the owners. */
  register: { args: { readonly name: string }; result: number };
  /** Blobs: the body, unless it is a file; the secret. */
  insert: {
    args: {
      readonly runId: string;
      readonly project: string;
      readonly app: string;
      readonly target: string;
      readonly status: number;
      readonly createdAt: number;
      readonly authorization?: string;
      readonly traceparent?: string;
      readonly fileSize?: number;
      readonly owned: boolean;
      readonly begunAt?: number;
    };
    result: number;
  };
  beginAttempt: { args: HeldDelivery & { readonly startedAt: number }; result: boolean };
  withdrawAttempt: { args: HeldDelivery; result: boolean };
  /** Blobs: the excerpt. */
  endAttempt: {
    args: HeldDelivery & {
      readonly attempt: Omit<AttemptResult, 'excerpt'>;
      readonly next: Next;
      readonly now: number;
    };
    result: boolean;
  };
  recover: { args: { readonly limit: number; readonly now: number }; result: Freed };
  release: { args: { readonly limit: number; readonly now: number }; result: Freed };
  claim: { args: { readonly number: number; readonly limit: number; readonly now: number }; result: Claimed };
  body: { args: { readonly id: number }; result: NewBody | undefined };
  find: { args: { readonly runId: string }; result: DeliveryRecord | undefined };
  backlog: { args: Record<string, never>; result: Backlog };
  prune: { args: { readonly before: number; readonly limit: number }; result: Pruned };
  /** Which of these are files that a delivery or a run has. */
  spooled: { args: { readonly names: readonly string[] }; result: string[] };
}

export interface Freed {
  /** Deliveries and runs. */
  readonly count: number;
  /** Deliveries of which an attempt was cut off. */
  readonly interrupted: readonly number[];
}

export interface Claimed {
  readonly deliveries: PendingDelivery[];
  /** Runs that were settled as failed, since what is sealed in them cannot be opened. */
  readonly unreadable: string[];
}

export interface Pruned {
  readonly count: number;
  /** Runs whose spool file is no longer needed. */
  readonly files: string[];
}

export type Kind = keyof Operations;
export type Args<K extends Kind> = Operations[K]['args'];
export type Result<K extends Kind> = Operations[K]['result'];
export type Blobs = readonly (Uint8Array | undefined)[];

export interface Operation<K extends Kind = Kind> {
  readonly kind: K;
  readonly args: Args<K>;
  readonly blobs: Blobs;
  /** The node that wants it; the one that opened the database where absent. */
  readonly owner?: number | undefined;
}

/**
 * What runs an operation of each kind. `replay`: it may have been committed before, its answer lost. `owner`
 * is the node that wants it.
 */
export type Handlers = {
  readonly [K in Kind]: (args: Args<K>, blobs: Blobs, replay: boolean, owner: number) => Result<K>;
};

/** How one operation of a committed batch ended. */
export type Outcome = { readonly value: unknown } | { readonly error: string };

/** A fault is of the environment: nothing of the batch was written, and all of it can be tried again. */
export type Answer = { readonly outcomes: readonly Outcome[] } | { readonly fault: string };

type Span = readonly [start: number, end: number] | null;

interface PackedOperation {
  readonly kind: Kind;
  readonly args: Args<Kind>;
  readonly spans: readonly Span[];
  readonly owner: number | undefined;
}

export interface PackedBatch {
  readonly replay: boolean;
  readonly operations: readonly PackedOperation[];
  readonly bytes: ArrayBuffer;
}

export type ToWorker = { readonly type: 'batch'; readonly batch: PackedBatch } | { readonly type: 'close' };

export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'answer'; readonly answer: Answer }
  | { readonly type: 'closed' };

/** What the database's thread is started with. */
export interface WorkerData {
  readonly file: string;
  readonly spoolDir: string;
  readonly keyring: Keyring;
  readonly nodeId: string;
}

export function sizeOf(blobs: Blobs): number {
  return blobs.reduce((sum, blob) => sum + (blob?.byteLength ?? 0), 0);
}

/** Copies the bytes: their owners go on using them, and a batch may have to be packed again. */
export function pack(operations: readonly Operation[], replay: boolean): PackedBatch {
  const bytes = new Uint8Array(operations.reduce((sum, { blobs }) => sum + sizeOf(blobs), 0));
  let end = 0;
  const place = (blob: Uint8Array | undefined): Span => {
    if (blob === undefined) return null;
    bytes.set(blob, end);
    const start = end;
    end += blob.byteLength;
    return [start, end];
  };
  return {
    replay,
    operations: operations.map(({ kind, args, blobs, owner }) => ({
      kind,
      args,
      spans: blobs.map(place),
      owner,
    })),
    bytes: bytes.buffer,
  };
}

export function unpack({ operations, bytes }: PackedBatch): Operation[] {
  const view = (span: Span) =>
    span === null ? undefined : new Uint8Array(bytes, span[0], span[1] - span[0]);
  return operations.map(({ kind, args, spans, owner }) => ({ kind, args, blobs: spans.map(view), owner }));
}
