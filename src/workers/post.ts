/**
 * One place among the workers, and whoever has it: kept filled until it is closed.
 *
 * A worker that ends by itself is followed by another, at once where it had served for a while, after pauses
 * that grow where it had not. Replacing puts a new one in its place first and then asks the old one to go;
 * a new one that does not come to serve leaves the old one where it is.
 */
import type { AddressInfo } from 'node:net';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { WorkerProcess } from './worker-process.ts';

export interface Hired {
  readonly worker: WorkerProcess;
  /** Resolves with where it takes calls, if it does; rejects when it cannot. */
  readonly serving: Promise<AddressInfo | undefined>;
}

export interface PostOptions {
  readonly number: number;
  /** Starts a process for this post. */
  readonly hire: (number: number) => Hired;
  readonly clock: Clock;
  readonly log: Logger;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** One that has served for this long was a good start. */
const SETTLED_MS = 10_000;

export class Post {
  readonly #options: PostOptions;
  #holder: WorkerProcess | undefined;
  /** Whatever changes the holder comes after what does so already. */
  #changing: Promise<unknown> = Promise.resolve();
  #pause = 0;
  #closed = false;
  #endPause = (): void => {};

  constructor(options: PostOptions) {
    this.#options = options;
  }

  /** Fills it for the first time; rejects when that fails. */
  async fill(): Promise<AddressInfo | undefined> {
    const { worker, serving } = this.#options.hire(this.#options.number);
    const listen = await serving;
    this.#install(worker);
    return listen;
  }

  /** Resolves when a new worker serves in place of the old one; false where it could not. */
  replace(): Promise<boolean> {
    return this.#change(async () => {
      const old = this.#holder;
      const replaced = !this.#closed && (await this.#tryOne());
      if (replaced) old?.stop(true);
      return replaced;
    });
  }

  /** No more workers; whoever is there is somebody else's to stop. */
  close(): void {
    this.#closed = true;
    this.#endPause();
  }

  #change<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#changing.then(change);
    this.#changing = changed;
    return changed;
  }

  async #tryOne(): Promise<boolean> {
    const { number, hire, log } = this.#options;
    const { worker, serving } = hire(number);
    try {
      await serving;
    } catch (error) {
      worker.kill();
      if (!this.#closed)
        log.error({ worker: number }, `a worker could not be started: ${(error as Error).message}`);
      return false;
    }
    this.#install(worker);
    return true;
  }

  #install(worker: WorkerProcess): void {
    const { number, clock, log } = this.#options;
    const since = clock.elapsed();
    this.#holder = worker;
    void worker.ended.then(ending => {
      if (this.#holder !== worker || this.#closed) return;
      log.error({ event: 'worker_lost', worker: number, pid: worker.pid }, `a worker ended with ${ending}`);
      if (clock.elapsed() - since > SETTLED_MS) this.#pause = 0;
      this.#holder = undefined;
      void this.#change(() => this.#refill());
    });
  }

  async #refill(): Promise<void> {
    while (this.#holder === undefined && !this.#closed) {
      await this.#wait(this.#pause);
      this.#pause = Math.min(Math.max(this.#pause * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
      if (!this.#closed) await this.#tryOne();
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
