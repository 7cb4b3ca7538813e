/**
 * The caller's side of one call: writes the answer with back-pressure, notices a caller who hangs up or
 * stops reading, and never throws once the caller is gone.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Problem } from '../errors.ts';
import type { CallerSide } from '../exchange/caller-side.ts';
import { answerTrailers, type RawHeaders } from '../exchange/headers.ts';

/** A caller who neither sends nor reads for this long has stalled. */
const STALL_MS = 60_000;
/** How long a refused caller may go on sending before its connection is closed. */
const LINGER_MS = 10_000;

export class Caller implements CallerSide {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #socket: Socket;
  readonly runId: string;
  #gone = false;
  #continued = false;
  #drain: (() => void) | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, runId: string) {
    this.#req = req;
    this.#res = res;
    this.#socket = req.socket;
    this.runId = runId;
  }

  /** True once the caller has hung up without its whole answer. */
  get gone(): boolean {
    return this.#gone;
  }

  /** True when the caller broke off while it was still sending. */
  get uploadBroken(): boolean {
    return this.#req.destroyed && this.#isSending();
  }

  /** Chunks, and so trailers, came with HTTP/1.1. */
  get takesTrailers(): boolean {
    return this.#req.httpVersionMinor > 0;
  }

  get headSent(): boolean {
    return this.#res.headersSent;
  }

  /** Calls back when the caller hangs up before its answer has ended. */
  onGone(callback: () => void): void {
    const left = (): void => {
      if (this.#res.writableFinished) return;
      this.#gone = true;
      this.#drained();
      callback();
    };
    // Whoever left while the token was checked has closed already; never told within this call, as otherwise.
    if (this.#res.destroyed) process.nextTick(left);
    else this.#res.once('close', left);
  }

  /** The caller is sending a body: it has to make progress. */
  watchUpload(onStall: () => void): void {
    this.#socket.setTimeout(STALL_MS);
    this.#req.on('timeout', () => {
      // Bytes that wait to be taken: it is the app that has stalled, and its time is limited elsewhere.
      if (this.#req.readableLength > 0) this.#socket.setTimeout(STALL_MS);
      else if (this.#res.writableEnded) this.#socket.destroy();
      else onStall();
    });
    this.#req.once('end', () => this.#socket.setTimeout(0));
  }

  continue(): void {
    this.#continued = true;
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
    // As `flushHeaders` does, but that writes UTF-8, and bytes above ASCII would come out as other bytes.
    if (!this.#gone && !this.#res.writableEnded) this.#res.write('', 'latin1');
  }

  /** False: wait for `whenDrained`. */
  write(chunk: Uint8Array): boolean {
    return this.#gone || this.#res.write(chunk);
  }

  whenDrained(callback: () => void): void {
    if (this.#drain === undefined) {
      this.#socket.setTimeout(STALL_MS);
      this.#res.once('drain', () => this.#drained());
    }
    this.#drain = callback;
  }

  end(tail?: Uint8Array, trailers?: RawHeaders): void {
    if (this.#gone) return;
    if (trailers !== undefined && trailers.length > 0) this.#res.addTrailers(answerTrailers(trailers));
    this.#res.end(tail);
    if (!this.#req.complete) this.#discardUpload();
  }

  problem(problem: Problem): void {
    if (this.#gone) return;
    const body = Buffer.from(problem.body(this.runId));
    const headers = ['Content-Type', 'application/problem+json', 'Content-Length', String(body.length)];
    headers.push('X-Request-Id', this.runId, ...problem.headers);
    const sending = this.#isSending();
    if (sending) headers.push('Connection', 'close');
    this.#res.writeHead(problem.status, STATUS_CODES[problem.status], headers);
    const sent = this.#req.method === 'HEAD' ? Buffer.alloc(0) : body;
    if (!sending || this.#awaitsContinue()) this.#res.end(sent);
    else this.#endAfterUpload(sent);
  }

  /** Ends the connection, so that an unfinished answer cannot be taken for a whole one. */
  cut(): void {
    // An HTTP/1.0 answer may end with its connection (RFC 9112, section 6.3): a reset is no such end.
    if (this.#req.httpVersionMinor === 0) this.#socket.resetAndDestroy();
    else this.#res.destroy();
  }

  /** True while the caller waits to be asked for the body that it has announced. */
  #awaitsContinue(): boolean {
    return this.#req.headers.expect !== undefined && !this.#continued;
  }

  /** True while more of the request is on its way, as far as its head says. */
  #isSending(): boolean {
    const { complete, headers } = this.#req;
    if (complete) return false;
    return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  }

  /**
   * A connection closed on bytes that nobody has read is reset, and the answer is lost with it (RFC 9112,
   * section 9.6): what still comes is thrown away first.
   */
  #endAfterUpload(body: Uint8Array): void {
    const end = (): void => {
      clearTimeout(timer);
      this.#res.end();
    };
    const timer = setTimeout(end, LINGER_MS);
    this.#req.once('end', end).once('close', end);
    this.#res.write(body);
    this.#socket.uncork(); // at once: what comes next may be what closes the connection
    this.#discardUpload();
  }

  #discardUpload(): void {
    this.#req.unpipe();
    this.#req.resume();
  }

  #drained(): void {
    const callback = this.#drain;
    if (callback === undefined) return;
    this.#drain = undefined;
    if (!this.#gone) this.#socket.setTimeout(0);
    callback();
  }
}
