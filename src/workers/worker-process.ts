/**
 * A worker as the primary sees it: one process, from its start until its last message has been heard.
 */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../clock.ts';
import { StartError } from '../errors.ts';
import type { MetricsSnapshot } from '../metrics.ts';
import type { Port } from '../port.ts';
import { type Channel, createChannel } from './channel.ts';
import type { Begin, FromWorker, ToWorker } from './messages.ts';

const SCRIPT = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);
/** For an answer to a question; one that does not come may be that of a worker about to end. */
const MEASURE_MS = 1_000;

/** Starts a process, which then waits for its `begin`. */
export function forkWorker(clock: Clock): WorkerProcess {
  // Each worker accepts by itself: a connection in the listener's queue belongs to none of them yet, so it
  // outlives any of them. Handed out by the primary, it would be lost with the worker that had just got it.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: fileURLToPath(SCRIPT), args: [], serialization: 'advanced' });
  const cache = getCompileCacheDir();
  const worker = cluster.fork(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache });
  return new WorkerProcess({ worker, clock, ended: endOf(worker), channel: channelTo(worker) });
}

interface Parts {
  readonly worker: Worker;
  readonly clock: Clock;
  readonly ended: Promise<string>;
  readonly channel: Channel;
}

export class WorkerProcess {
  /** Resolves when its process has ended and its last message has been heard: in words, how it ended. */
  readonly ended: Promise<string>;
  readonly channel: Channel;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #life: Port<ToWorker, FromWorker>;
  readonly #serving = Promise.withResolvers<AddressInfo | undefined>();
  readonly #answers = new Map<number, () => void>();
  #phase: 'starting' | 'serving' | 'stopping' | 'ended' = 'starting';
  #available = false;
  #connections = 0;
  #questions = 0;
  #counted: MetricsSnapshot = [];

  constructor({ worker, clock, ended, channel }: Parts) {
    this.#worker = worker;
    this.#clock = clock;
    this.ended = ended;
    this.channel = channel;
    this.#life = channel.port('life');
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  get isServing(): boolean {
    return this.#phase === 'serving';
  }

  /** Whether it can store deliveries, as far as it has told. */
  get available(): boolean {
    return this.isServing && this.#available;
  }

  /** How many callers are connected to it, as far as it has told. */
  get connections(): number {
    return this.#connections;
  }

  /** Has so many of its callers come again on new connections. */
  shed(count: number): void {
    this.#life.send({ type: 'shed', count });
  }

  /** Resolves with where it takes calls, if it does; rejects with a StartError when it cannot, or has ended. */
  begin(begin: Begin): Promise<AddressInfo | undefined> {
    this.#life.listen(message => this.#hear(message));
    this.#life.send({ type: 'begin', begin });
    void this.ended.then(ending => {
      this.#phase = 'ended';
      this.#serving.reject(new StartError(`a worker ended before it was ready, with ${ending}`));
    });
    return this.#serving.promise;
  }

  /** `handOver`: another has taken its place, and its callers have time to notice. */
  stop(handOver: boolean): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'stopping';
    this.#life.send({ type: 'stop', handOver });
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  /** What it has counted; what it last told, where it does not answer. */
  async measure(): Promise<MetricsSnapshot> {
    if (this.isServing || this.#phase === 'stopping') {
      const id = ++this.#questions;
      await new Promise<void>(resolve => {
        const cancel = this.#clock.after(MEASURE_MS, resolve);
        this.#answers.set(id, () => {
          cancel();
          resolve();
        });
        this.#life.send({ type: 'measure', id });
      });
      this.#answers.delete(id);
    }
    return this.#counted;
  }

  #hear(message: FromWorker): void {
    switch (message.type) {
      case 'serving':
        if (this.#phase === 'starting') this.#phase = 'serving';
        this.#serving.resolve(message.listen);
        break;
      case 'failed':
        this.#serving.reject(new StartError(message.message));
        break;
      case 'state':
        this.#available = message.available;
        this.#connections = message.connections;
        break;
      case 'measured':
        this.#counted = message.snapshot;
        this.#answers.get(message.id)?.();
        break;
      case 'done':
        this.#counted = message.snapshot;
    }
  }
}

/** What is sent to a process that is gone is lost, and its end is told by `endOf`. */
function channelTo(worker: Worker): Channel {
  return createChannel({
    send: message => void worker.send(message as object, undefined, undefined, () => {}),
    listen: listener => void worker.on('message', listener),
  });
}

/** Both events, in whichever order: the process is gone, and all that it sent has been read. */
async function endOf({ process: child }: Worker): Promise<string> {
  try {
    const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    const [[code, signal]] = await Promise.all([exit, once(child, 'disconnect')]);
    return signal ?? `exit code ${code}`;
  } catch (error) {
    return (error as Error).message; // it could not be started
  }
}
