/**
 * Gathers what a receiver answers to one attempt. The first of these settles it: the end of the answer, its
 * 64 KiB read, an error, or the deadline. A status that has arrived by then stands, whatever settled it.
 *
 * It has the last word on sending, too: undici calls `onRequestStart` when the connection is open, right
 * before it writes the first byte of the request.
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { keepHeaders } from './answer-headers.ts';
import { AttemptFault } from './outcome.ts';
import { WithheldError } from './withheld.ts';

const MAX_READ = 64 * 1024;
const MAX_EXCERPT = 4 * 1024;

export interface AnswerOptions {
  readonly clock: Pick<Clock, 'elapsed'>;
  /** Whether the request may be sent. */
  readonly permitted: () => boolean;
}

export class Answer implements Dispatcher.DispatchHandler {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #permitted: () => boolean;
  readonly #settled = Promise.withResolvers<void>();
  #sentAt: number | undefined;
  #read = 0;

  status: number | undefined;
  /** What settled it, where that was not its end. */
  error: unknown;
  /** True once it was read to its end, which is what leaves a connection usable. */
  complete = false;
  isSettled = false;
  /** From the start of sending to the first byte of the answer. */
  firstByteMs: number | undefined;
  /** What is kept of its headers, in the form of answer-headers.ts. */
  headers: string | undefined;
  excerpt: Uint8Array | undefined;

  constructor({ clock, permitted }: AnswerOptions) {
    this.#clock = clock;
    this.#permitted = permitted;
  }

  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  fail(error: unknown): void {
    if (this.isSettled) return;
    this.error = error;
    this.#settle();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (!this.#permitted()) {
      controller.abort(new WithheldError('not_permitted', 'not permitted at the moment of sending'));
      return;
    }
    this.#sentAt = this.#clock.elapsed();
  }

  onResponseStarted(): void {
    if (this.#sentAt !== undefined) this.firstByteMs ??= this.#clock.elapsed() - this.#sentAt;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (this.isSettled || status < 200) return;
    this.status = status;
    this.headers = keepHeaders(controller.rawHeaders);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isSettled) return;
    this.#keep(chunk);
    this.#read += chunk.length;
    if (this.#read > MAX_READ) controller.abort(new AttemptFault('invalid_answer', 'the answer is too long'));
  }

  onResponseEnd(): void {
    if (this.isSettled) return;
    this.complete = true;
    this.#settle();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(error);
  }

  /** Copies: the chunk is a view of memory that the connection goes on using. */
  #keep(chunk: Buffer): void {
    const kept = this.excerpt ?? new Uint8Array();
    const more = chunk.subarray(0, MAX_EXCERPT - kept.length);
    if (more.length === 0) return;
    this.excerpt = new Uint8Array(kept.length + more.length);
    this.excerpt.set(kept);
    this.excerpt.set(more, kept.length);
  }

  #settle(): void {
    this.isSettled = true;
    this.#settled.resolve();
  }
}
