/** What a caller's request says of the trace that it belongs to. */
import type { IncomingMessage } from 'node:http';
import { type TraceContext, type TracedCall, traceContextOf } from '../trace.ts';

/** A `traceparent` that comes more than once is none that is valid. */
type TraceHeaders = Readonly<Record<'traceparent' | 'tracestate', string | undefined>>;

/** Undefined where it says nothing, or nothing valid. */
export function callerTrace({ headers }: IncomingMessage): TraceContext | undefined {
  const { traceparent, tracestate } = headers as TraceHeaders;
  return traceContextOf(traceparent, tracestate);
}

export function tracedCall({ method, url, headers }: IncomingMessage, runId: string): TracedCall {
  const { traceparent, tracestate } = headers as TraceHeaders;
  return { runId, method: method!, url: url!, host: headers.host, traceparent, tracestate };
}
