/**
 * The body of an asynchronous call, taken in whole before anything else is done with it: in memory while it is
 * small and all of them together are, in a spool file beyond that, with the caller held back while the disk
 * cannot keep up.
 */
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Problem } from '../errors.ts';
import type { Spool, SpoolFile } from '../exchange/spool.ts';
import type { Logger } from '../log.ts';
import type { NewBody } from '../store/store.ts';

export interface IncomingBodyOptions {
  readonly req: IncomingMessage;
  /** In bytes. */
  readonly limit: number;
  readonly spool: Spool;
  /** Of its file, should it need one. */
  readonly name: string;
  readonly log: Logger;
  /** Sees every piece as it comes, and throws the Problem of one that is not acceptable. */
  readonly inspect: (chunk: Uint8Array) => void;
}

/** What one body may hold in memory, and what all of them and all captured answers may. */
const MEMORY_PER_BODY = 64 * 1024;
const MEMORY_OF_ALL = 64 * 1024 * 1024;

export class IncomingBody {
  readonly #options: IncomingBodyOptions;
  /** Set while it is read. */
  #reject: ((problem: Problem) => void) | undefined;
  #chunks: Uint8Array[] = [];
  #size = 0;
  #held = 0;
  #file: SpoolFile | undefined;
  #kept: NewBody | undefined;

  constructor(options: IncomingBodyOptions) {
    this.#options = options;
  }

  /**
   * True once all of it has come, false where the caller breaks off. Rejects with the Problem of a body that
   * is too large or not acceptable, or that `fail` was given.
   */
  read(): Promise<boolean> {
    const { req } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const whole = (): void => resolve(true);
    const broken = (): void => resolve(false);
    const take = (chunk: Buffer): void => {
      try {
        this.#take(chunk);
      } catch (error) {
        this.#reject!(error as Problem);
      }
    };
    this.#reject = problem => {
      req.off('data', take);
      reject(problem);
    };
    // Whoever left while the token was checked has taken the body along.
    if (req.destroyed) broken();
    else req.on('data', take).once('end', whole).once('close', broken);
    return promise;
  }

  /** Ends the reading; of no effect where there is nothing more to read. */
  fail(problem: Problem): void {
    this.#reject?.(problem);
  }

  /** What was read, synced where it is a file; undefined where that is nothing. */
  async keep(): Promise<NewBody | undefined> {
    if (this.#file !== undefined) this.#kept = await this.#file.finish();
    else if (this.#size > 0) {
      this.#kept = { bytes: this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks) };
    }
    return this.#kept;
  }

  /** It is the store's now, whatever comes. */
  handOver(): void {
    this.#forget();
    this.#file = undefined;
    this.#kept = undefined;
  }

  /** Leaves nothing of it behind. */
  async discard(): Promise<void> {
    this.#forget();
    await this.#file?.discard();
    if (this.#kept === undefined || !('file' in this.#kept)) return;
    const { file } = this.#kept;
    await rm(file, { force: true }).catch(error => {
      this.#options.log.warn({ err: error, file }, 'a spool file could not be removed');
    });
  }

  #take(chunk: Buffer): void {
    const { limit, inspect, spool } = this.#options;
    this.#size += chunk.length;
    if (this.#size > limit) throw bodyTooLarge(limit);
    inspect(chunk);
    if (this.#file !== undefined) {
      this.#append(this.#file, [chunk]);
      return;
    }
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    spool.memory.take(chunk.length);
    if (this.#held > MEMORY_PER_BODY || spool.memory.used > MEMORY_OF_ALL) this.#spill();
  }

  #spill(): void {
    const { spool, name } = this.#options;
    const chunks = this.#chunks;
    this.#forget();
    this.#file = spool.create(name);
    this.#append(this.#file, chunks);
  }

  #append(file: SpoolFile, chunks: readonly Uint8Array[]): void {
    const { req } = this.#options;
    let room = true;
    for (const chunk of chunks) room = file.append(chunk);
    if (room) return;
    req.pause();
    file.whenDrained(() => req.resume());
  }

  /** What is in memory. */
  #forget(): void {
    this.#options.spool.memory.give(this.#held);
    this.#held = 0;
    this.#chunks = [];
  }
}

export function bodyTooLarge(limit: number): Problem {
  return new Problem('request_too_large', `The body of an asynchronous call has at most ${limit} bytes`);
}
