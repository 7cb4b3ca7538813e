/**
 * The connection to a collector, which takes one request at a time and is kept between them. By undici's
 * `dispatch`, as calls go to their apps: nothing of the answer but its status is of interest, and so there is no
 * stream for it.
 */
import { type Dispatcher, Pool } from 'undici';
import type { Clock } from '../clock.ts';
import type { TracingConfig } from '../config/config.ts';

export interface CollectorOptions {
  readonly config: Pick<TracingConfig, 'endpoint' | 'headers' | 'timeout'>;
  readonly clock: Clock;
}

export interface Collector {
  /** Rejects where the collector does not take it in time. */
  post(body: Buffer): Promise<void>;
  /** Cuts off what is under way. */
  close(): Promise<void>;
}

export function openCollector({ config, clock }: CollectorOptions): Collector {
  const { timeout } = config;
  const { origin, pathname, search } = new URL(config.endpoint);
  const pool = new Pool(origin, {
    allowH2: false,
    connections: 1,
    pipelining: 1,
    connect: { timeout },
    headersTimeout: timeout,
    bodyTimeout: timeout,
  });
  const headers = Object.entries({ ...config.headers, 'content-type': 'application/x-protobuf' }).flat();
  return {
    async post(body) {
      const posting = new Posting();
      const cancel = clock.after(timeout, () => posting.fail(new Error(`no answer within ${timeout} ms`)));
      pool.dispatch({ method: 'POST', path: pathname + search, headers, body }, posting);
      try {
        await posting.answered;
      } finally {
        cancel();
      }
    },
    close: () => pool.destroy(),
  };
}

class Posting implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<void>();
  #controller: Dispatcher.DispatchController | undefined;
  #failure: Error | undefined;
  #status = 0;

  get answered(): Promise<void> {
    return this.#answer.promise;
  }

  fail(error: Error): void {
    this.#failure = error;
    this.#answer.reject(error);
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) controller.abort(this.#failure);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  /** What a collector says is nothing to us. */
  onResponseData(): void {}

  onResponseEnd(): void {
    if (this.#status < 300) this.#answer.resolve();
    else this.#answer.reject(new Error(`the collector answers ${this.#status}`));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#answer.reject(error);
  }
}
