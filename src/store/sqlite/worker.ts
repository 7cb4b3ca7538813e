/**
 * The thread that owns the database: opens it, answers each batch after its commit, closes it.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { createBatchRunner } from './batch.ts';
import { type Database, openDatabase } from './database.ts';
import { createHandlers } from './handlers.ts';
import { type Answer, type FromWorker, type ToWorker, unpack, type WorkerData } from './protocol.ts';

/** Bodies that were read belong to nobody here: they move instead of being copied. */
function movable(answer: Answer): ArrayBuffer[] {
  if ('fault' in answer) return [];
  return answer.outcomes.flatMap(outcome => {
    const value = 'value' in outcome ? outcome.value : undefined;
    if (typeof value !== 'object' || value === null || !('bytes' in value)) return [];
    return [(value.bytes as Uint8Array<ArrayBuffer>).buffer];
  });
}

function serve(port: MessagePort, data: WorkerData): void {
  const post = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
  let database: Database;
  try {
    database = openDatabase(data);
  } catch (error) {
    post({ type: 'refused', message: (error as Error).message });
    return;
  }
  const runBatch = createBatchRunner(database, createHandlers(database.db, data));
  port.on('message', (message: ToWorker) => {
    if (message.type === 'batch') {
      const answer = runBatch({ operations: unpack(message.batch), replay: message.batch.replay });
      post({ type: 'answer', answer }, movable(answer));
    } else {
      database.db.close(); // the last connection: it checkpoints and removes the WAL
      post({ type: 'closed' });
      port.close();
    }
  });
  post({ type: 'ready' });
}

serve(parentPort!, workerData as WorkerData);
