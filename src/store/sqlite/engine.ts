/**
 * The main thread's end of the database's thread: starts it, hands it one batch at a time, and starts it
 * anew when it is lost. A lost thread is an answer like any other, not an exception.
 */
import { Worker } from 'node:worker_threads';
import { StartError } from '../../errors.ts';
import {
  type Answer,
  type FromWorker,
  type Operation,
  pack,
  type ToWorker,
  type WorkerData,
} from './protocol.ts';

const SCRIPT = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);

/** `lost`: the thread ended before it answered, so nobody knows whether the batch was committed. */
export type Reply = Exclude<Answer, { fault: string }> | { readonly fault: string; readonly lost: boolean };

export interface Engine {
  /** Throws a StartError when the database cannot be used. */
  start(): Promise<void>;
  /** One at a time. Never rejects. */
  commit(operations: readonly Operation[], replay: boolean): Promise<Reply>;
  stop(): Promise<void>;
}

export interface EngineOptions {
  readonly data: WorkerData;
  /** The thread ended while it had nothing to do. */
  readonly onLost: (reason: string) => void;
}

type Heard = FromWorker | { readonly type: 'lost'; readonly reason: string };

export function createEngine({ data, onLost }: EngineOptions): Engine {
  let worker: Worker | undefined;
  let hear: ((heard: Heard) => void) | undefined;
  let stopping = false;

  const heard = () => new Promise<Heard>(resolve => (hear = resolve));

  function tell(message: Heard): void {
    const listener = hear;
    hear = undefined;
    listener?.(message);
  }

  function launch(): Worker {
    const started = new Worker(SCRIPT, { workerData: data });
    let reason = 'the thread of the database ended';
    started.on('message', tell);
    started.on('error', error => (reason = `the thread of the database failed: ${String(error)}`));
    started.on('exit', () => {
      const idle = worker === started && hear === undefined && !stopping;
      worker = undefined;
      tell({ type: 'lost', reason });
      if (idle) onLost(reason);
    });
    return started;
  }

  async function start(): Promise<void> {
    const answer = heard();
    const started = launch();
    const message = await answer;
    if (message.type === 'ready') {
      worker = started;
      return;
    }
    await started.terminate();
    if (message.type === 'refused') throw new StartError(message.message);
    throw new StartError(message.type === 'lost' ? message.reason : 'the database did not open');
  }

  function send(to: Worker, message: ToWorker, transfer: ArrayBuffer[] = []): Promise<Heard> {
    const answer = heard();
    to.postMessage(message, transfer);
    return answer;
  }

  return {
    start,
    async commit(operations, replay) {
      try {
        if (worker === undefined) await start();
      } catch (error) {
        return { fault: (error as Error).message, lost: true };
      }
      const batch = pack(operations, replay);
      const message = await send(worker!, { type: 'batch', batch }, [batch.bytes]);
      if (message.type === 'lost') return { fault: message.reason, lost: true };
      const { answer } = message as Extract<FromWorker, { type: 'answer' }>;
      return 'fault' in answer ? { ...answer, lost: false } : answer;
    },
    async stop() {
      stopping = true;
      if (worker === undefined) return;
      const ending = worker;
      await send(ending, { type: 'close' });
      await ending.terminate();
    },
  };
}
