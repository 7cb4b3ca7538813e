/** What a caller's request says of the trace that it belongs to. */
import type { IncomingMessage } from 'node:http';
import { type TraceContext, type TracedCall, traceContextOf } from '../trace.ts';

/** Undefined where it says nothing, or nothing valid: so, too, where `traceparent` comes more than once. */
export function callerTrace({ headers }: IncomingMessage): TraceContext | undefined {
  const { traceparent, tracestate } = headers as Readonly<Record<string, string | undefined>>;
  return traceContextOf(traceparent, tracestate);
}

export function tracedCall(req: IncomingMessage, runId: string): TracedCall {
  return { runId, method: req.method!, url: req.url!, host: req.headers.host, caller: callerTrace(req) };
}
