/**
 * The database in its directory, for as long as this process has it: locked, in a thread of its own, behind
 * one queue of group commits, with an eye on the disk.
 */
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { createAvailability } from '../availability.ts';
import { ensureDirectory } from '../directory.ts';
import type { Keyring } from '../seal.ts';
import { DATABASE_FILE } from './database.ts';
import { createEngine } from './engine.ts';
import { type DirectoryLock, lockDirectory } from './lock.ts';
import { createQueue, type Queue } from './queue.ts';
import { createSpaceWatch } from './space.ts';
import { createSpool, type Spool } from './spool.ts';

const DEFAULT_MIN_FREE = 32 * 1024 * 1024;

export interface EmbeddedOptions {
  readonly dir: string;
  /** Holds large bodies, each named by its run. */
  readonly spoolDir: string;
  readonly keyring: Keyring;
  /** A name that no other start of the process has had. */
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Free bytes on the disk below which the store says that it is unavailable. */
  readonly minFree?: number;
}

export interface Embedded {
  readonly spool: Spool;
  /** True from the end of `open` to the beginning of `close`. */
  readonly serving: boolean;
  readonly available: boolean;
  open(): Promise<void>;
  close(): Promise<void>;
  submit: Queue['submit'];
}

/** `onChange` is told when it becomes available, and when it is no longer. */
export function createEmbedded(options: EmbeddedOptions, onChange = (_available: boolean) => {}): Embedded {
  const { dir, spoolDir, keyring, nodeId, clock, log, minFree = DEFAULT_MIN_FREE } = options;
  const availability = createAvailability<'writes_fail' | 'disk_nearly_full'>(log, onChange);
  const spool = createSpool(spoolDir);
  const engine = createEngine({
    data: { file: join(dir, DATABASE_FILE), spoolDir, keyring, nodeId },
    onLost,
  });
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

  function onLost(reason: string): void {
    availability.set('writes_fail', reason);
    queue.probe();
  }

  async function start(): Promise<void> {
    ensureDirectory(dir);
    ensureDirectory(spoolDir);
    lock = lockDirectory(dir);
    try {
      await engine.start();
      await spool.sweep(names => queue.submit('spooled', { names }));
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
    spool,
    get serving() {
      return serving;
    },
    get available() {
      return serving && availability.ok;
    },
    open: () => (opening ??= start()),
    close: () => (closing ??= stop()),
    submit: (kind, args, blobs, owner) =>
      serving ? queue.submit(kind, args, blobs, owner) : Promise.reject(new Error('the store is not open')),
  };
}
