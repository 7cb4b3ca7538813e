/**
 * The caller's side of one call: writes the answer with back-pressure, notices a caller who hangs up or
 * stops reading, and never throws once the caller is gone.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Problem } from '../errors.ts';
import { answerTrailers, type RawHeaders } from './headers.ts';

/** A caller who neither sends nor reads for this long has stalled. */
const STALL_MS = 60_000;

export class Caller {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly runId: string;
  #gone = false;
  #drain: (() => void) | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, runId: string) {
    this.#req = req;
    this.#res = res;
    this.runId = runId;
  }

  /** True once the caller has hung up without its whole answer. */
  get gone(): boolean {
    return this.#gone;
  }

  /** True when the caller broke off while it was still sending. */
  get uploadBroken(): boolean {
    return this.#req.destroyed && !this.#req.complete;
  }

  get headSent(): boolean {
    return this.#res.headersSent;
  }

  /** Calls back when the caller hangs up before its answer has ended. */
  onGone(callback: () => void): void {
    this.#res.once('close', () => {
      if (this.#res.writableFinished) return;
      this.#gone = true;
      this.#drained();
      callback();
    });
  }

  /** The caller is sending a body: it has to make progress. */
  watchUpload(onStall: () => void): void {
    const { socket } = this.#req;
    socket.setTimeout(STALL_MS);
    this.#req.once('timeout', onStall);
    this.#req.once('end', () => socket.setTimeout(0));
  }

  continue(): void {
    this.#res.writeContinue();
  }

  /** Passes an interim answer on, where the caller's version of HTTP has any (RFC 9110, section 15.2). */
  inform(status: number, headers: RawHeaders): void {
    const res: ServerResponse & { writeInformation?: (status: number, headers: RawHeaders) => void } =
      this.#res;
    if (this.#gone || res.headersSent || this.#req.httpVersionMinor === 0) return;
    res.writeInformation?.(status, headers);
  }

  head(status: number, message: string | undefined, headers: RawHeaders): void {
    if (this.#gone) return;
    this.#res.writeHead(status, message, headers as string[]);
  }

  /** Sends the head now rather than with the first bytes of the body. */
  flushHead(): void {
    if (!this.#gone && !this.#res.writableEnded) this.#res.flushHeaders();
  }

  /** False: wait for `whenDrained`. */
  write(chunk: Uint8Array): boolean {
    return this.#gone || this.#res.write(chunk);
  }

  whenDrained(callback: () => void): void {
    if (this.#drain === undefined) {
      this.#req.socket.setTimeout(STALL_MS);
      this.#res.once('drain', () => this.#drained());
    }
    this.#drain = callback;
  }

  end(tail?: Uint8Array, trailers?: RawHeaders): void {
    if (this.#gone) return;
    if (trailers !== undefined && trailers.length > 0) this.#res.addTrailers(answerTrailers(trailers));
    this.#res.end(tail);
  }

  problem(problem: Problem): void {
    if (this.#gone) return;
    const body = Buffer.from(problem.body(this.runId));
    const headers = ['Content-Type', 'application/problem+json', 'Content-Length', String(body.length)];
    headers.push('X-Request-Id', this.runId, ...problem.headers);
    // What is left of the request is not going to be read.
    if (!this.#req.complete) headers.push('Connection', 'close');
    this.#res.writeHead(problem.status, headers);
    this.#res.end(this.#req.method === 'HEAD' ? undefined : body);
  }

  /** Ends the connection, so that an unfinished answer cannot be taken for a whole one. */
  cut(): void {
    this.#res.destroy();
  }

  #drained(): void {
    const callback = this.#drain;
    if (callback === undefined) return;
    this.#drain = undefined;
    if (!this.#gone) this.#req.socket.setTimeout(0);
    callback();
  }
}
