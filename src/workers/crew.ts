/**
 * All workers of the machine: as many posts as the configuration wants, and every process that has ever held
 * one until it has ended, also those that have handed over and still have calls to end.
 */
import type { AddressInfo } from 'node:net';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import { countsOf, type MetricsSnapshot, sumOf } from '../metrics.ts';
import { surplusOf } from './balance.ts';
import type { Begin } from './messages.ts';
import { type Hired, Post } from './post.ts';
import { forkWorker, type WorkerProcess } from './worker-process.ts';

/** How long a stop waits for what is left to do for workers that have ended. */
const LEAVE_MS = 3_000;
/** Between two looks at whether connections are spread evenly. */
const BALANCE_MS = 1_000;

export interface CrewOptions {
  readonly size: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly begin: (number: number, worker: WorkerProcess) => Begin;
  /** Serves a new worker over its channel; what it returns is called when the worker is gone. */
  readonly attend: (worker: WorkerProcess) => () => Promise<void>;
  /** How long all have to end after a stop; whoever has not is killed. */
  readonly graceMs: number;
}

export class Crew {
  readonly #options: CrewOptions;
  readonly #posts: readonly Post[];
  readonly #workers = new Set<WorkerProcess>();
  /** Work that is left to do for those who are gone. */
  readonly #leaving = new Set<Promise<void>>();
  /** What those had counted who are gone. */
  #past: MetricsSnapshot = [];
  #adding: Promise<void> = Promise.resolve();
  #replacing: Promise<void> = Promise.resolve();
  #stopping = false;
  #endBalance = (): void => {};

  constructor(options: CrewOptions) {
    const { size, clock, log } = options;
    const hire = (number: number): Hired => this.#hire(number);
    this.#options = options;
    this.#posts = Array.from(
      { length: size },
      (_, index) => new Post({ number: index + 1, hire, clock, log }),
    );
  }

  /** Those who take calls, or would if their role were to. */
  get serving(): readonly WorkerProcess[] {
    return [...this.#workers].filter(worker => worker.isServing);
  }

  /** Resolves with where calls are taken, if they are, once every worker serves. */
  async start(): Promise<AddressInfo | undefined> {
    const [listen] = await Promise.all(this.#posts.map(post => post.fill()));
    this.#balance();
    return listen;
  }

  /** New workers in place of all, one after another. */
  replace(): Promise<void> {
    this.#replacing = this.#replacing.then(() => this.#replaceAll());
    return this.#replacing;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#endBalance();
    for (const post of this.#posts) post.close();
    for (const worker of this.#workers) worker.stop(false);
    const cancel = this.#options.clock.after(this.#options.graceMs, () => {
      for (const worker of this.#workers) worker.kill();
    });
    await Promise.all([...this.#workers].map(worker => worker.ended));
    cancel();
    await this.#settleLeaving();
  }

  /** What all have counted, those who are gone included. */
  async measure(): Promise<readonly MetricsSnapshot[]> {
    const past = this.#past; // at this moment: who becomes part of it meanwhile is asked as one of the present
    const present = await Promise.all([...this.#workers].map(worker => worker.measure()));
    return [past, ...present];
  }

  #balance(): void {
    const { serving } = this;
    const surplus = surplusOf(serving.map(({ connections }) => connections));
    for (const [index, worker] of serving.entries()) {
      if (surplus[index]! > 0) worker.shed(surplus[index]!);
    }
    this.#endBalance = this.#options.clock.after(BALANCE_MS, () => this.#balance());
  }

  #hire(number: number): Hired {
    const { clock, begin, attend } = this.#options;
    const worker = forkWorker(clock);
    const leave = attend(worker);
    this.#workers.add(worker);
    void worker.ended.then(() => this.#seeOff(worker, leave));
    return { worker, serving: worker.begin(begin(number, worker)) };
  }

  #seeOff(worker: WorkerProcess, leave: () => Promise<void>): void {
    const { log } = this.#options;
    const leaving = Promise.all([leave(), this.#keepCounts(worker)])
      .catch((error: unknown) =>
        log.error({ err: error as Error }, 'the end of a worker could not be settled'),
      )
      .then(() => void this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** Counted among the present until it is among the past: a sum that falls would look like a restart. */
  #keepCounts(worker: WorkerProcess): Promise<void> {
    this.#adding = this.#adding.then(async () => {
      const counted = countsOf(await worker.measure());
      this.#past = await sumOf([this.#past, counted]).snapshot();
      this.#workers.delete(worker);
    });
    return this.#adding;
  }

  /** A store that cannot be written would keep them for ever; the next start does the same work. */
  async #settleLeaving(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(LEAVE_MS, late.resolve);
    await Promise.race([Promise.all(this.#leaving), late.promise]);
    cancel();
  }

  async #replaceAll(): Promise<void> {
    const { log } = this.#options;
    if (this.#stopping) return;
    log.info('replacing the workers');
    let replaced = true;
    for (const post of this.#posts) replaced &&= await post.replace();
    if (this.#stopping) return;
    if (replaced) log.info('the workers are replaced');
    else log.error('the rest of the workers are not replaced');
  }
}
