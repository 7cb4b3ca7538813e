/**
 * Where captured answers go when they are too large for memory: files in one directory, written behind the
 * call and synced before a delivery may refer to them. A disk that refuses a write does not lose the
 * answer: what it holds already is read back and the rest stays in memory.
 */
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../log.ts';
import type { NewBody } from '../store/store.ts';

export interface Spool {
  /** Bytes of unfinished answers that are in memory now, over all calls. */
  readonly memory: MemoryGauge;
  create(name: string): SpoolFile;
  start(): Promise<void>;
}

/** A running total that its owner checks against a bound. */
export class MemoryGauge {
  #used = 0;

  get used(): number {
    return this.#used;
  }

  take(bytes: number): void {
    this.#used += bytes;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }
}

export interface SpoolOptions {
  readonly dir: string;
  /** Of files that are being written; in `dir` unless given. */
  readonly draftDir?: string;
  readonly log: Logger;
}

export function createSpool({ dir, draftDir = dir, log }: SpoolOptions): Spool {
  let serial = 0;
  return {
    memory: new MemoryGauge(),
    create: name => new SpoolFile({ dir, name, draft: join(draftDir, `${name}.${++serial}`), log }),
    async start() {
      await mkdir(draftDir, { recursive: true, mode: 0o700 });
    },
  };
}

/** Bytes waiting for the disk beyond which the writer is asked to wait. */
const HIGH_WATER = 1024 * 1024;

interface SpoolFileOptions {
  readonly dir: string;
  /** Of the finished file. */
  readonly name: string;
  /** Path of the file while it is written. */
  readonly draft: string;
  readonly log: Logger;
}

export class SpoolFile {
  readonly #options: SpoolFileOptions;
  #handle: FileHandle | undefined;
  #queue: Uint8Array[] = [];
  #queued = 0;
  #written = 0;
  #failed = false;
  #writing: Promise<void> | undefined;
  #onDrain: (() => void) | undefined;

  constructor(options: SpoolFileOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#written + this.#queued;
  }

  /** False: better to wait for the next `drained` before appending more. */
  append(bytes: Uint8Array): boolean {
    if (bytes.length > 0) {
      this.#queue.push(bytes);
      this.#queued += bytes.length;
      if (!this.#failed) this.#writing ??= this.#write();
    }
    return this.#queued < HIGH_WATER || this.#failed;
  }

  /** Calls back once, when the disk has caught up. */
  whenDrained(callback: () => void): void {
    this.#onDrain = callback;
  }

  /**
   * Everything on disk and synced, under its final name (durable with the directory, which is the store's to
   * sync); in memory where the disk would not have it.
   */
  async finish(): Promise<NewBody> {
    await this.#writing;
    if (!this.#failed) {
      try {
        await this.#handle?.sync();
        await this.#handle?.close();
        this.#handle = undefined;
        const file = join(this.#options.dir, this.#options.name);
        await rename(this.#options.draft, file);
        return { file, size: this.#written };
      } catch (error) {
        this.#refused(error);
      }
    }
    const bytes = Buffer.concat([await this.#readBack(), ...this.#queue]);
    await this.discard();
    return { bytes };
  }

  /** The bytes from `offset` on, as far as they were appended; they must not grow meanwhile. */
  async *read(offset: number): AsyncGenerator<Uint8Array> {
    await this.#writing;
    const piece = Buffer.allocUnsafe(256 * 1024);
    let position = offset;
    while (position < this.#written) {
      const { bytesRead } = await this.#handle!.read(piece, 0, piece.length, position);
      if (bytesRead === 0) throw new Error('a spooled answer is shorter than was written');
      position += bytesRead;
      yield Buffer.from(piece.subarray(0, bytesRead));
    }
    let skip = Math.max(0, offset - this.#written);
    for (const chunk of this.#queue) {
      if (skip < chunk.length) yield chunk.subarray(skip);
      skip = Math.max(0, skip - chunk.length);
    }
  }

  async discard(): Promise<void> {
    this.#failed = true; // ends the writing
    this.#queue = [];
    this.#queued = 0;
    await this.#writing;
    await this.#handle?.close().catch(() => {});
    this.#handle = undefined;
    await rm(this.#options.draft, { force: true }).catch(error => {
      this.#options.log.warn({ err: error, file: this.#options.draft }, 'a spool file could not be removed');
    });
  }

  async #write(): Promise<void> {
    try {
      this.#handle ??= await open(this.#options.draft, 'wx+', 0o600);
      while (this.#queue.length > 0 && !this.#failed) {
        const [chunk] = this.#queue;
        const { bytesWritten } = await this.#handle.write(chunk!, 0, chunk!.length, this.#written);
        if (this.#failed) break; // discarded meanwhile
        this.#written += bytesWritten;
        this.#queued -= bytesWritten;
        if (bytesWritten === chunk!.length) this.#queue.shift();
        else this.#queue[0] = chunk!.subarray(bytesWritten);
        if (this.#queued < HIGH_WATER) this.#drained();
      }
    } catch (error) {
      this.#refused(error);
    }
    this.#writing = undefined;
    this.#drained();
  }

  #refused(error: unknown): void {
    this.#failed = true;
    this.#options.log.error(
      { err: error, run_id: this.#options.name },
      'the disk refuses a captured answer; it is kept in memory',
    );
  }

  #drained(): void {
    const callback = this.#onDrain;
    this.#onDrain = undefined;
    callback?.();
  }

  async #readBack(): Promise<Buffer> {
    if (this.#written === 0) return Buffer.alloc(0);
    const handle = this.#handle ?? (await open(this.#options.draft, 'r'));
    this.#handle = handle;
    const bytes = Buffer.alloc(this.#written);
    await handle.read(bytes, 0, bytes.length, 0);
    return bytes;
  }
}
