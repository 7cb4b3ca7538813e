/** Every operation with what runs it, its statements prepared once. */
import type { DatabaseSync } from 'node:sqlite';
import {
  attemptRecorder,
  beginAttemptHandler,
  endAttemptHandler,
  withdrawAttemptHandler,
} from './attempts.ts';
import { registerHandler } from './database.ts';
import { insertHandler } from './insert.ts';
import { createLedgerHandlers } from './ledger/handlers.ts';
import { createOnce } from './once.ts';
import { claimHandler, recoverHandler, releaseHandler } from './ownership.ts';
import type { Handlers, WorkerData } from './protocol.ts';
import { pruneHandler } from './prune.ts';
import { backlogHandler, bodyHandler, findHandler, spooledHandler } from './reading.ts';
import { createRunHandlers } from './runs/handlers.ts';
import { createStatsHandlers } from './stats/handlers.ts';

type HandlerData = Pick<WorkerData, 'keyring' | 'spoolDir'>;

export function createHandlers(db: DatabaseSync, { keyring, spoolDir }: HandlerData): Handlers {
  const record = attemptRecorder(db);
  const insert = insertHandler({ db, keyring, spoolDir });
  const body = bodyHandler(db, spoolDir);
  const once = createOnce(db);
  return {
    ...createRunHandlers({ db, keyring, spoolDir, insert, body }),
    ...createLedgerHandlers({ db, keyring, record, once, body }),
    ...createStatsHandlers(db, once),
    register: registerHandler(db),
    insert,
    beginAttempt: beginAttemptHandler({ db, record }),
    withdrawAttempt: withdrawAttemptHandler({ db, record }),
    endAttempt: endAttemptHandler({ db, record }),
    recover: recoverHandler({ db, keyring, record }),
    release: releaseHandler({ db, keyring, record }),
    claim: claimHandler({ db, keyring, record }),
    body,
    find: findHandler(db, keyring),
    backlog: backlogHandler(db),
    prune: pruneHandler(db),
    spooled: spooledHandler(db),
  };
}
