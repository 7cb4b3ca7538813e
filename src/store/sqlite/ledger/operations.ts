/** Turns the calls of the ledger's interface into operations of the database. */
import type { Ledger } from '../../ledger.ts';
import type { Submit } from '../operations.ts';

export interface LedgerOperationsOptions {
  readonly submit: Submit;
  /** Numbers the operations that must not be carried out twice. */
  readonly nextNumber: () => number;
}

/** What of the ledger is an operation. */
export type LedgerOnRequest = Omit<Ledger, 'follow'>;

export function createLedgerOperations({ submit, nextNumber }: LedgerOperationsOptions): LedgerOnRequest {
  return {
    list: (filter, page) => submit('listDeliveries', { filter, page }),
    runIds: (filter, page) => submit('listRunIds', { filter, page }),
    summaries: runIds => submit('summaries', { runIds }),
    content: runId => submit('content', { runId }),
    pendingOf: project => submit('pendingOf', { ...(project !== undefined && { project }) }),

    redeliver({ idempotency, ...redelivery }) {
      const args = { ...redelivery, number: nextNumber(), ...(idempotency && { key: idempotency.key }) };
      return submit('redeliver', args, [idempotency?.fingerprint]);
    },

    cancel(runId, at, project) {
      const args = { runId, at, number: nextNumber(), ...(project !== undefined && { project }) };
      return submit('cancelDelivery', args);
    },

    addJob({ idempotency, ...job }) {
      const args = { ...job, number: nextNumber(), ...(idempotency && { key: idempotency.key }) };
      return submit('addJob', args, [idempotency?.fingerprint]);
    },

    findJob: (id, project) => submit('findJob', { id, ...(project !== undefined && { project }) }),

    async claimJob() {
      const claim = nextNumber();
      const job = await submit('claimJob', { number: claim });
      return job && { ...job, ref: `${job.id}:${claim}` };
    },

    stepJob(ref, step) {
      const end = ref.lastIndexOf(':');
      const held = { id: ref.slice(0, end), claim: Number(ref.slice(end + 1)) };
      return submit('stepJob', { ...step, ...held, number: nextNumber() });
    },
  };
}
