/**
 * The embedded store: one process, one directory, SQLite in a thread of its own. Everything goes through one
 * queue of group commits; this file turns the interface's calls into operations of that queue.
 */
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { ensureDirectory } from '../directory.ts';
import type { Keyring } from '../seal.ts';
import type { NewDelivery, PendingDelivery, Store } from '../store.ts';
import { createAvailability } from './availability.ts';
import { createEngine } from './engine.ts';
import { type DirectoryLock, lockDirectory } from './lock.ts';
import type { Args, Blobs } from './protocol.ts';
import { createQueue, type Queue } from './queue.ts';
import { createSpaceWatch } from './space.ts';
import { createSpool, type Spool } from './spool.ts';

const DATABASE = 'afterword.db';
const DEFAULT_MIN_FREE = 32 * 1024 * 1024;

/** Rows per transaction of the operations that may touch very many. */
const CLAIM_CHUNK = 500;
const RECOVER_CHUNK = 500;
const PRUNE_CHUNK = 200;

export interface SqliteStoreOptions {
  readonly dir: string;
  /** Holds large bodies, each named by its run id. */
  readonly spoolDir: string;
  readonly keyring: Keyring;
  /** A name that no other start of the process has had. */
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Free bytes on the disk below which the store says that it is unavailable. */
  readonly minFree?: number;
}

export function createSqliteStore(options: SqliteStoreOptions): Store {
  const { dir, spoolDir, keyring, nodeId, clock, log, minFree = DEFAULT_MIN_FREE } = options;
  const availability = createAvailability(log);
  const spool = createSpool(spoolDir);
  const engine = createEngine({ data: { file: join(dir, DATABASE), spoolDir, keyring, nodeId }, onLost });
  const queue = createQueue({ engine, clock, log, onTry: fault => availability.set('writes_fail', fault) });
  const space = createSpaceWatch({
    dir,
    minFree,
    onLook: detail => availability.set('disk_nearly_full', detail),
  });
  let lock: DirectoryLock | undefined;
  let opening: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  let serving = false;
  let claims = 0;

  function onLost(reason: string): void {
    availability.set('writes_fail', reason);
    queue.probe();
  }

  const submit: Queue['submit'] = (kind, args, blobs) =>
    serving ? queue.submit(kind, args, blobs) : Promise.reject(new Error('the store is not open'));

  async function start(): Promise<void> {
    ensureDirectory(dir);
    ensureDirectory(spoolDir);
    lock = lockDirectory(dir);
    try {
      await engine.start();
      await spool.sweep(runIds => queue.submit('spooled', { runIds }));
      await space.start();
      serving = true;
    } catch (error) {
      await engine.stop();
      lock.release();
      throw error;
    }
  }

  async function stop(): Promise<void> {
    await opening?.catch(() => {});
    if (!serving) return;
    serving = false;
    space.stop();
    await queue.drain();
    await engine.stop();
    lock?.release();
  }

  return {
    open: () => (opening ??= start()),
    close: () => (closing ??= stop()),

    get available() {
      return serving && availability.ok;
    },

    async insert(delivery) {
      return submit('insert', ...insertion(delivery, spool));
    },

    beginAttempt: (ref, startedAt) => submit('beginAttempt', { id: Number(ref), startedAt }),

    endAttempt(ref, { excerpt, ...attempt }, next) {
      return submit('endAttempt', { id: Number(ref), attempt, next, now: clock.now() }, [excerpt]);
    },

    recover: () =>
      inChunks(Number.POSITIVE_INFINITY, RECOVER_CHUNK, limit =>
        submit('recover', { limit, now: clock.now() }),
      ),

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

    body: ref => submit('body', { id: Number(ref) }),
    find: runId => submit('find', { runId }),
    backlog: () => submit('backlog', {}),

    prune: (before, limit) =>
      inChunks(limit, PRUNE_CHUNK, async chunk => {
        const { count, files } = await submit('prune', { before, limit: chunk });
        await spool.remove(files);
        return count;
      }),
  };
}

function insertion(delivery: NewDelivery, spool: Spool): [args: Args<'insert'>, blobs: Blobs] {
  const { runId, body, confidential } = delivery;
  if ('file' in body && body.file !== spool.path(runId)) {
    throw new Error(`the body of run ${runId} is not in the spool: ${body.file}`);
  }
  const args = {
    runId,
    project: delivery.projectId,
    app: delivery.app,
    target: delivery.target,
    status: delivery.statusCode,
    createdAt: delivery.createdAt,
    ...(confidential.authorization !== undefined && { authorization: confidential.authorization }),
    ...('file' in body && { fileSize: body.size }),
    owned: delivery.owned,
    ...(delivery.begunAt !== undefined && { begunAt: delivery.begunAt }),
  };
  return [args, ['bytes' in body ? body.bytes : undefined, confidential.secret]];
}

/** Repeats `step` until it has nothing left to do or the limit is reached; tells the sum. */
async function inChunks(
  limit: number,
  chunk: number,
  step: (size: number) => Promise<number>,
): Promise<number> {
  let total = 0;
  while (total < limit) {
    const size = Math.min(chunk, limit - total);
    const done = await step(size);
    total += done;
    if (done < size) break;
  }
  return total;
}
