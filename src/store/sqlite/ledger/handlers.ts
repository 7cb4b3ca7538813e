/** Every operation of the ledger with what runs it, its statements prepared once. */
import type { DatabaseSync } from 'node:sqlite';
import type { RecordAttempt } from '../attempts.ts';
import type { Once } from '../once.ts';
import type { Handlers, WorkerData } from '../protocol.ts';
import { cancelDeliveryHandler } from './cancel.ts';
import {
  addJobHandler,
  claimJobHandler,
  findJobHandler,
  pruneLedgerHandler,
  stepJobHandler,
} from './jobs.ts';
import { createLedgerKeys } from './keys.ts';
import { keyLister } from './listing.ts';
import { createLocateDelivery } from './locate.ts';
import type { LedgerOperations } from './protocol.ts';
import {
  contentHandler,
  listDeliveriesHandler,
  listRunIdsHandler,
  pendingOfHandler,
  runsOfHandler,
  summariesHandler,
  summaryReader,
} from './reading.ts';
import { redeliverHandler, roundMaker } from './redeliver.ts';

export interface LedgerHandlerOptions extends Pick<WorkerData, 'keyring'>, Pick<Handlers, 'body'> {
  readonly db: DatabaseSync;
  readonly record: RecordAttempt;
  readonly once: Once;
}

export function createLedgerHandlers(options: LedgerHandlerOptions): Pick<Handlers, keyof LedgerOperations> {
  const { db, keyring, record, once, body } = options;
  const locate = createLocateDelivery(db);
  const reading = { list: keyLister(db, locate), read: summaryReader(db), locate };
  const keys = createLedgerKeys(db);
  const makeRound = roundMaker({ db, keyring, locate });
  return {
    listDeliveries: listDeliveriesHandler(reading),
    listRunIds: listRunIdsHandler(reading),
    summaries: summariesHandler(reading),
    content: contentHandler(locate, body),
    pendingOf: pendingOfHandler(db),
    runsOf: runsOfHandler(locate),
    redeliver: once<'redeliver'>(redeliverHandler(makeRound, keys)),
    cancelDelivery: once<'cancelDelivery'>(cancelDeliveryHandler({ db, record, locate })),
    addJob: once<'addJob'>(addJobHandler(db, keys)),
    findJob: findJobHandler(db),
    claimJob: once<'claimJob'>(claimJobHandler(db)),
    stepJob: once<'stepJob'>(stepJobHandler(db, makeRound)),
    pruneLedger: pruneLedgerHandler(db),
  };
}
