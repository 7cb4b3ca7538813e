/** The request of a run, made ready to be sent to its app. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { AppConfig } from '../config/config.ts';
import { headerList, withTrace } from '../exchange/headers.ts';
import { pathAt, type Way } from '../exchange/ways.ts';
import type { ClaimedRun } from '../store/runs.ts';
import type { Body } from '../store/store.ts';
import { type TraceContext, traceContextOf } from '../trace.ts';

const NO_PARAMETERS = Buffer.from('{}');

export function requestOf(
  run: ClaimedRun,
  app: AppConfig,
  way: Way,
  body: Body | undefined,
  trace: TraceContext | undefined,
): Dispatcher.DispatchOptions {
  const headers = trace === undefined ? run.headers : withTrace(run.headers, trace);
  return {
    method: run.method,
    path: pathAt(way, run.path, run.query),
    headers: ['Host', way.host, ...headers],
    body: body === undefined ? (app.runtime === 'cortex' ? NO_PARAMETERS : null) : contentOf(body),
    // The time limit of a run is its own, and covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}

function contentOf(body: Body): Uint8Array | Readable {
  if ('bytes' in body) return body.bytes;
  return 'file' in body ? createReadStream(body.file) : Readable.from(body.pieces());
}

/** Of the call that asked for the run, as it was stored with its headers. */
export function callTrace({ headers }: Pick<ClaimedRun, 'headers'>): TraceContext | undefined {
  return traceContextOf(headerList(headers, 'traceparent'), headerList(headers, 'tracestate'));
}
