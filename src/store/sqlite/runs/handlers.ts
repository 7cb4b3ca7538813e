/** Every operation of runs with what runs it, its statements prepared once. */
import type { DatabaseSync } from 'node:sqlite';
import type { Handlers, WorkerData } from '../protocol.ts';
import { claimRunsHandler, claimStrayRunsHandler } from './claim.ts';
import { insertRunHandler } from './insert.ts';
import {
  beginRunHandler,
  cancelRunHandler,
  endRunHandler,
  runsToCancelHandler,
  withdrawRunHandler,
} from './life.ts';
import { listRunsHandler } from './listing.ts';
import { createLocate } from './locate.ts';
import type { RunOperations } from './protocol.ts';
import { pruneRunKeysHandler, pruneRunsHandler } from './prune.ts';
import {
  endedRunsHandler,
  findRunHandler,
  oldestQueuedRunHandler,
  recordReader,
  runBodyHandler,
  runResultHandler,
} from './reading.ts';

export interface RunHandlerOptions
  extends Pick<WorkerData, 'keyring' | 'spoolDir'>,
    Pick<Handlers, 'insert' | 'body'> {
  readonly db: DatabaseSync;
}

export function createRunHandlers(options: RunHandlerOptions): Pick<Handlers, keyof RunOperations> {
  const { db, keyring, spoolDir, insert, body } = options;
  const locate = createLocate(db);
  const read = recordReader(db);
  return {
    insertRun: insertRunHandler({ db, keyring, spoolDir, locate }),
    claimRuns: claimRunsHandler({ db, keyring }),
    claimStrayRuns: claimStrayRunsHandler({ db, keyring }),
    runBody: runBodyHandler(db, spoolDir),
    beginRun: beginRunHandler(db),
    withdrawRun: withdrawRunHandler(db),
    endRun: endRunHandler({ db, spoolDir, insert }),
    cancelRun: cancelRunHandler(db, locate),
    runsToCancel: runsToCancelHandler(db),
    findRun: findRunHandler(locate, read),
    runResult: runResultHandler({ db, spoolDir, locate, body }),
    listRuns: listRunsHandler({ db, locate, read }),
    oldestQueuedRun: oldestQueuedRunHandler(db),
    endedRuns: endedRunsHandler(locate),
    pruneRuns: pruneRunsHandler(db),
    pruneRunKeys: pruneRunKeysHandler(db),
  };
}
