/**
 * Traces, as the parts that are traced see them: where spans begin and end, and what of one goes along with a
 * request (W3C Trace Context). Where nothing is traced there is no `Tracing`, and nobody asks further.
 */

/** What goes along with a request, as the values of the headers of these names. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

export interface SpanEnd {
  /** What was answered, where something was. */
  readonly status?: number | undefined;
  /** A code of ours, where that tells more than the status. */
  readonly error?: string | undefined;
}

/** A span that has begun. One that is never ended is never told. */
export interface OpenSpan<End extends SpanEnd = SpanEnd> {
  /** What goes along with requests that are made on its behalf: to an app, or to a receiver. */
  readonly context: TraceContext;
  /** To be called once. */
  end(end: End): void;
}

export interface CallSpanEnd extends SpanEnd {
  /** As far as the call was read. */
  readonly projectId?: string | undefined;
  readonly app?: string | undefined;
}

export type CallSpan = OpenSpan<CallSpanEnd>;

export interface TracedCall {
  readonly runId: string;
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  readonly host: string | undefined;
  /** The caller's headers of these names, valid or not. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

export interface TracedRun {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  /** Of the call that asked for it. */
  readonly call: TraceContext | undefined;
}

export interface TracedAttempt {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  /** Within its round, from 1. */
  readonly number: number;
  readonly round: number;
  /** Scheme, host and port of the target; the rest of it may hold credentials. */
  readonly origin: string;
  /** Of the call whose answer is delivered. */
  readonly traceparent: string | undefined;
}

export interface Tracing {
  /** One request of a caller, from its head to the end of its answer. */
  call(call: TracedCall): CallSpan;
  /** An asynchronous call that is carried out. */
  run(run: TracedRun): OpenSpan;
  attempt(attempt: TracedAttempt): OpenSpan;
}

/** What a `traceparent` says. */
export interface SpanIds {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Its parts have their places; only after the last may a version to come say more (Trace Context, section 3.2.4). */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-.*)?$/;
const LENGTH_OF_VERSION_00 = 55;
const SAMPLED = 1;

/** Undefined where it is not valid. */
export function readTraceparent(text: string): SpanIds | undefined {
  if (!TRACEPARENT.test(text)) return undefined;
  if (text.length > LENGTH_OF_VERSION_00 && text.startsWith('00')) return undefined;
  const flags = Number.parseInt(text.slice(53, 55), 16);
  return { traceId: text.slice(3, 35), spanId: text.slice(36, 52), sampled: (flags & SAMPLED) !== 0 };
}

export function formatTraceparent({ traceId, spanId, sampled }: SpanIds): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** The values of the two headers, each where it came, as a context; undefined where they make none. */
export function traceContextOf(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | undefined {
  const ids = traceparent === undefined ? undefined : readTraceparent(traceparent);
  if (ids === undefined) return undefined;
  return { traceparent: formatTraceparent(ids), ...(tracestate !== undefined && { tracestate }) };
}
