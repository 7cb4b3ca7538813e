/** The operations of the ledger, as part of what the main thread and the database's thread say to each other. */
import type {
  Cancelled,
  ClaimedJob,
  DeliveryFilter,
  DeliveryList,
  DeliverySummary,
  Job,
  JobStep,
  LedgerPage,
  NewJob,
  PendingOf,
  Redelivered,
  Redelivery,
  RunIdList,
} from '../../ledger.ts';
import type { NewBody } from '../../store.ts';
import type { Numbered } from '../once.ts';

/** A job as it was claimed. */
export interface HeldJob {
  readonly id: string;
  readonly claim: number;
}

interface Asked {
  readonly filter: DeliveryFilter;
  readonly page: LedgerPage;
}

export interface LedgerOperations {
  listDeliveries: { args: Asked; result: DeliveryList };
  listRunIds: { args: Asked; result: RunIdList };
  summaries: { args: { readonly runIds: readonly string[] }; result: DeliverySummary[] };
  content: { args: { readonly runId: string }; result: NewBody | undefined };
  pendingOf: { args: { readonly project?: string }; result: PendingOf };
  /** The runs of these deliveries. */
  runsOf: { args: { readonly ids: readonly number[] }; result: string[] };
  /** Blobs: the fingerprint. */
  redeliver: {
    args: Numbered & Omit<Redelivery, 'idempotency'> & { readonly key?: string };
    result: Redelivered;
  };
  cancelDelivery: {
    args: Numbered & { readonly runId: string; readonly at: number; readonly project?: string };
    result: Cancelled;
  };
  /** Blobs: the fingerprint. */
  addJob: {
    args: Numbered & Omit<NewJob, 'idempotency'> & { readonly key?: string };
    result: Job | 'conflict';
  };
  findJob: { args: { readonly id: string; readonly project?: string }; result: Job | undefined };
  claimJob: { args: Numbered; result: Omit<ClaimedJob, 'ref'> | undefined };
  stepJob: { args: Numbered & HeldJob & JobStep; result: Job | undefined };
  /** Deletes jobs that ended long ago, and keys that stand for nothing any more. */
  pruneLedger: { args: { readonly before: number; readonly keysBefore: number }; result: void };
}
