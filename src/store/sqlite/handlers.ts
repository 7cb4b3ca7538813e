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
import { createRunHandlers } from './runs/handlers.ts';

type HandlerData = Pick<WorkerData, 'keyring' | 'spoolDir'>;

export function createHandlers(db: DatabaseSync, { keyring, spoolDir }: HandlerData): Handlers {
  const record = attemptRecorder(db);
  const insert = insertHandler({ db, keyring, spoolDir });
  const body = bodyHandler(db, spoolDir);
  return {
    ...createRunHandlers({ db, keyring, spoolDir, insert, body }),
    register: registerHandler(db),
    insert,
    beginAttempt: beginAttemptHandler({ db, record }),
    withdrawAttempt: withdrawAttemptHandler({ db, record }),
    endAttempt: endAttemptHandler({ db, record }),
    recover: recoverHandler({ db, keyring, record }),
    release: releaseHandler({ db, keyring, record }),
    claim: claimHandler({ db, keyring, record }),
    body,
    find: findHandler(db),
    backlog: backlogHandler(db),
    prune: pruneHandler(db),
    spooled: spooledHandler(db),
  };
}
