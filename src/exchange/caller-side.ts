/**
 * The caller's side of one call, as the exchange with the app sees it: somebody on a connection, or, of a call
 * that is carried out in the background, nobody.
 */
import type { Problem } from '../errors.ts';
import type { RawHeaders } from './headers.ts';

export interface CallerSide {
  /** True once the caller has hung up without its whole answer. */
  readonly gone: boolean;
  /** True when the caller broke off while it was still sending. */
  readonly uploadBroken: boolean;
  readonly takesTrailers: boolean;
  readonly headSent: boolean;
  /** Calls back when the caller hangs up before its answer has ended. */
  onGone(callback: () => void): void;
  inform(status: number, headers: RawHeaders): void;
  head(status: number, message: string | undefined, headers: RawHeaders): void;
  /** Sends the head now rather than with the first bytes of the body. */
  flushHead(): void;
  /** False: wait for `whenDrained`. */
  write(chunk: Uint8Array): boolean;
  whenDrained(callback: () => void): void;
  end(tail?: Uint8Array, trailers?: RawHeaders): void;
  problem(problem: Problem): void;
  /** Ends the connection, so that an unfinished answer cannot be taken for a whole one. */
  cut(): void;
}

/** Nobody waits for the answer, and so nobody holds it up. */
export const NOBODY: CallerSide = {
  gone: true,
  uploadBroken: false,
  takesTrailers: false,
  headSent: false,
  onGone() {},
  inform() {},
  head() {},
  flushHead() {},
  write: () => true,
  whenDrained() {},
  end() {},
  problem() {},
  cut() {},
};
