/**
 * An app's answer as an exchange sees it: how it reaches the caller and the delivery is the answer's own.
 */
import type { RawHeaders } from './headers.ts';

/** The head of an app's answer. */
export interface AppHead {
  readonly status: number;
  readonly message: string | undefined;
  readonly headers: RawHeaders;
}

/** How an answer reaches the caller and the delivery. */
export interface Answer {
  data(chunk: Uint8Array): void;
  end(trailers: RawHeaders): void;
  /** The answer breaks off: what was gathered of it is of no use. */
  discard(): void;
  /** What the caller got, or was to get. */
  readonly statusCode: number;
}
