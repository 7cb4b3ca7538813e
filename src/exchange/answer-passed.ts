/**
 * An app's answer that reaches the caller untouched: of a custom app, or the event stream of a cortex
 * function. With a webhook it is captured on the way, and its last bytes wait for the delivery.
 */
import { Capture } from './capture.ts';
import type { Answer, AppHead } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { answerHeaders, hasNoBody, headerList, headerValue, type RawHeaders } from './headers.ts';

export function createPassedAnswer(exchange: Exchange, head: AppHead): Answer {
  const answer = new PassedAnswer(exchange, head);
  answer.start();
  return answer;
}

class PassedAnswer implements Answer {
  readonly #exchange: Exchange;
  readonly #head: AppHead;
  readonly #capture: Capture | undefined;
  /** Bytes of the body still to come, where its length is known. */
  #left: number;
  /** The caller's last bytes, held until the delivery is stored. */
  #tail: Uint8Array | undefined;
  #headHeld = false;
  #begun = false;

  constructor(exchange: Exchange, head: AppHead) {
    this.#exchange = exchange;
    this.#head = head;
    const { run, deps } = exchange;
    const { status, headers } = head;
    const length = headerValue(headers, 'content-length');
    this.#left = hasNoBody(run.method, status)
      ? 0
      : length === undefined
        ? Number.POSITIVE_INFINITY
        : Number(length);
    if (run.keeping === undefined) return;
    this.#capture = new Capture({
      run,
      head: { statusCode: status, contentType: headerValue(headers, 'content-type') },
      contentEncoding: headerList(headers, 'content-encoding'),
      events: run.config.runtime === 'cortex',
      maxBody: deps.maxBody,
      spool: deps.spool,
    });
  }

  get statusCode(): number {
    return this.#head.status;
  }

  start(): void {
    // Without a body the head is the end of the answer.
    if (this.#left === 0 && this.#capture !== undefined) {
      this.#headHeld = true;
      return;
    }
    this.#sendHead();
    // Bytes that came along are handed over before the next tick; without any, the head goes alone.
    process.nextTick(() => {
      if (!this.#begun) this.#exchange.caller.flushHead();
    });
  }

  data(chunk: Uint8Array): void {
    this.#begun = true;
    if (this.#capture !== undefined) {
      if (!this.#capture.write(chunk)) {
        this.#exchange.block();
        this.#capture.whenDrained(() => this.#exchange.unblock());
      }
    }
    this.#left -= chunk.length;
    // The end is to follow at once, or wait for the delivery; one write is cheaper than two.
    if (this.#left <= 0) {
      this.#tail = chunk;
      return;
    }
    if (!this.#exchange.caller.write(chunk)) {
      this.#exchange.block();
      this.#exchange.caller.whenDrained(() => this.#exchange.unblock());
    }
  }

  end(trailers: RawHeaders): void {
    this.#begun = true;
    const finish = this.#exchange.finish();
    this.#exchange.complete(
      this.statusCode,
      finish,
      () => this.#capture!.complete(finish),
      () => {
        if (this.#headHeld) this.#sendHead();
        this.#exchange.caller.end(this.#tail, trailers);
      },
    );
  }

  discard(): void {
    this.#capture?.discard();
  }

  #sendHead(): void {
    const { status, message, headers } = this.#head;
    const { caller, run } = this.#exchange;
    const trailers = this.#left === Number.POSITIVE_INFINITY && caller.takesTrailers;
    caller.head(status, message, answerHeaders(headers, run.runId, trailers));
  }
}
