/**
 * Turns the calls of the store's interface into operations of the database, whichever way those get there.
 */
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { inChunks } from '../chunks.ts';
import { IDEMPOTENCY_MS } from '../runs.ts';
import type { PendingDelivery, Store } from '../store.ts';
import { insertion } from './insertion.ts';
import { createLedgerOperations, type LedgerOnRequest } from './ledger/operations.ts';
import type { Args, Blobs, Freed, Kind, Result } from './protocol.ts';
import { parseDeliveryRef } from './ref.ts';
import { createRunOperations } from './runs/operations.ts';
import type { Spool } from './spool.ts';
import { createStatsOperations } from './stats/operations.ts';

/** Rows per transaction of the operations that may touch very many. */
const CLAIM_CHUNK = 500;
const FREE_CHUNK = 500;
const PRUNE_CHUNK = 200;

/** Resolves once the operation is committed. */
export type Submit = <K extends Kind>(kind: K, args: Args<K>, blobs?: Blobs) => Promise<Result<K>>;

export interface OperationsOptions {
  readonly submit: Submit;
  readonly spool: Pick<Spool, 'path' | 'remove'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What of a store is an operation, or several. */
export type StoreOperations = Omit<Store, 'open' | 'close' | 'available' | 'tenure' | 'watch' | 'ledger'> & {
  readonly ledger: LedgerOnRequest;
};

export function createOperations({ submit, spool, clock, log }: OperationsOptions): StoreOperations {
  let claims = 0;
  let numbered = 0;
  const nextNumber = () => (numbered += 1);

  const free = (kind: 'recover' | 'release') => freeAll(clock, args => submit(kind, args));

  return {
    runs: createRunOperations({ submit, spool, clock }),
    ledger: createLedgerOperations({ submit, nextNumber }),
    stats: createStatsOperations({ submit, nextNumber }),

    async insert(delivery) {
      return submit('insert', ...insertion(delivery, spool));
    },

    beginAttempt: (ref, startedAt) => submit('beginAttempt', { ...parseDeliveryRef(ref), startedAt }),

    withdrawAttempt: ref => submit('withdrawAttempt', parseDeliveryRef(ref)),

    endAttempt(ref, { excerpt, ...attempt }, next) {
      const held = parseDeliveryRef(ref);
      return submit('endAttempt', { ...held, attempt, next, now: clock.now() }, [excerpt]);
    },

    recover: () => free('recover'),
    release: () => free('release'),

    async claim(limit) {
      const claimed: PendingDelivery[] = [];
      await inChunks(limit, CLAIM_CHUNK, async chunk => {
        claims += 1;
        const result = await submit('claim', { number: claims, limit: chunk, now: clock.now() });
        claimed.push(...result.deliveries);
        for (const runId of result.unreadable) {
          log.error(
            { event: 'secret_unreadable', runId },
            'a delivery was failed: its sealed secret cannot be read',
          );
        }
        return result.deliveries.length + result.unreadable.length;
      });
      return claimed;
    },

    body: ref => submit('body', { id: parseDeliveryRef(ref).id }),
    find: runId => submit('find', { runId }),
    backlog: () => submit('backlog', {}),

    async prune(before, limit) {
      await submit('pruneLedger', { before, keysBefore: clock.now() - IDEMPOTENCY_MS });
      return inChunks(limit, PRUNE_CHUNK, async chunk => {
        const { count, files } = await submit('prune', { before, limit: chunk });
        await spool.remove(files);
        return count;
      });
    },
  };
}

/** Frees deliveries and runs a chunk at a time until none is left; tells how many. */
export function freeAll(
  clock: Clock,
  submit: (args: Args<'recover' | 'release'>) => Promise<Freed>,
): Promise<number> {
  return inChunks(Number.POSITIVE_INFINITY, FREE_CHUNK, async limit => {
    const { count } = await submit({ limit, now: clock.now() });
    return count;
  });
}
