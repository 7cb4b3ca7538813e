/** The operations of runs, as part of what the main thread and the database's thread say to each other. */
import type {
  ClaimedRun,
  RunBeginning,
  RunEnd,
  RunFilter,
  RunInsertion,
  RunPage,
  RunRecord,
  WantedRuns,
} from '../../runs.ts';
import type { NewBody } from '../../store.ts';
import type { Args, Pruned } from '../protocol.ts';
import type { Named } from './ref.ts';

/** A run as it was claimed. */
export interface Held {
  readonly id: number;
  readonly claim: number;
}

export interface Ended {
  readonly delivery?: number;
  /** Its request was in a spool file, which is no longer needed. */
  readonly spooled: boolean;
}

export interface RunOperations {
  /** Blobs: the body, unless it is a file; the webhook's secret; the fingerprint. */
  insertRun: {
    args: {
      readonly runId: string;
      readonly project: string;
      readonly app: string;
      readonly createdAt: number;
      readonly method: string;
      readonly path: string;
      readonly query?: string;
      readonly headers: readonly string[];
      readonly target?: string;
      readonly authorization?: string;
      readonly fileSize?: number;
      readonly key?: string;
    };
    result: RunInsertion;
  };
  claimRuns: {
    args: { readonly number: number; readonly wanted: readonly WantedRuns[] };
    result: ClaimedRun[];
  };
  claimStrayRuns: {
    args: {
      readonly number: number;
      readonly known: readonly Pick<WantedRuns, 'projectId' | 'app'>[];
      readonly before: number;
      readonly limit: number;
    };
    result: ClaimedRun[];
  };
  runBody: { args: Held; result: NewBody | undefined };
  beginRun: { args: Held & { readonly startedAt: number }; result: RunBeginning };
  withdrawRun: { args: Held; result: boolean };
  /** Blobs: the result or the delivery's body, unless it is a file; the delivery's secret. */
  endRun: {
    args: Held & {
      readonly end: RunEnd;
      /** Of the result. */
      readonly fileSize?: number;
      readonly delivery?: Args<'insert'>;
    };
    result: Ended | undefined;
  };
  cancelRun: { args: { readonly project: string; readonly runId: string }; result: boolean };
  runsToCancel: { args: Record<string, never>; result: Named[] };
  findRun: {
    args: { readonly project: string | undefined; readonly runId: string };
    result: RunRecord | undefined;
  };
  runResult: { args: { readonly project: string; readonly runId: string }; result: NewBody | undefined };
  listRuns: { args: { readonly filter: RunFilter; readonly page: RunPage }; result: RunRecord[] };
  oldestQueuedRun: { args: Record<string, never>; result: number | undefined };
  endedRuns: { args: { readonly runIds: readonly string[] }; result: string[] };
  pruneRuns: { args: { readonly before: number; readonly limit: number }; result: Pruned };
  pruneRunKeys: { args: { readonly before: number; readonly limit: number }; result: number };
}
