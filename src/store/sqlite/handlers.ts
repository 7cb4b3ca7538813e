/** Every operation with what runs it, its statements prepared once. */
import { attemptRecorder, beginAttemptHandler, endAttemptHandler } from './attempts.ts';
import type { Database } from './database.ts';
import { insertHandler } from './insert.ts';
import { claimHandler, recoverHandler } from './ownership.ts';
import type { Handlers, WorkerData } from './protocol.ts';
import { pruneHandler } from './prune.ts';
import { backlogHandler, bodyHandler, findHandler, spooledHandler } from './reading.ts';

export function createHandlers({ db, owner }: Database, { keyring, spoolDir }: WorkerData): Handlers {
  const record = attemptRecorder(db);
  return {
    insert: insertHandler({ db, owner, keyring, spoolDir }),
    beginAttempt: beginAttemptHandler({ db, owner, record }),
    endAttempt: endAttemptHandler({ db, owner, record }),
    recover: recoverHandler({ db, owner, keyring, record }),
    claim: claimHandler({ db, owner, keyring, record }),
    body: bodyHandler(db, spoolDir),
    find: findHandler(db),
    backlog: backlogHandler(db),
    prune: pruneHandler(db),
    spooled: spooledHandler(db),
  };
}
