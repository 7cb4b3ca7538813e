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
import { claimHandler, recoverHandler, releaseHandler } from './ownership.ts';
import type { Handlers, WorkerData } from './protocol.ts';
import { pruneHandler } from './prune.ts';
import { backlogHandler, bodyHandler, findHandler, spooledHandler } from './reading.ts';

type HandlerData = Pick<WorkerData, 'keyring' | 'spoolDir'>;

export function createHandlers(db: DatabaseSync, { keyring, spoolDir }: HandlerData): Handlers {
  const record = attemptRecorder(db);
  return {
    register: registerHandler(db),
    insert: insertHandler({ db, keyring, spoolDir }),
    beginAttempt: beginAttemptHandler({ db, record }),
    withdrawAttempt: withdrawAttemptHandler({ db, record }),
    endAttempt: endAttemptHandler({ db, record }),
    recover: recoverHandler({ db, keyring, record }),
    release: releaseHandler({ db, keyring, record }),
    claim: claimHandler({ db, keyring, record }),
    body: bodyHandler(db, spoolDir),
    find: findHandler(db),
    backlog: backlogHandler(db),
    prune: pruneHandler(db),
    spooled: spooledHandler(db),
  };
}
