/**
 * The spans of calls, runs and attempts. This runs for every call, and is made to take little of it: a span keeps
 * what it was given as it was, and says what it has to say when it is written, which is later and for many at once.
 *
 * An attempt and a run happen after their call: each is in its call's trace, and so kept where that is, and
 * linked to it besides, as is the custom for what is caused and not waited for.
 */
import type { Clock } from '../clock.ts';
import type { SamplerConfig } from '../config/config.ts';
import {
  type CallSpan,
  type CallSpanEnd,
  formatTraceparent,
  type OpenSpan,
  readTraceparent,
  type SpanEnd,
  type SpanIds,
  type TraceContext,
  type TracedAttempt,
  type TracedCall,
  type TracedRun,
  type Tracing,
} from '../trace.ts';
import { type Conventions, createConventions } from './conventions.ts';
import type { Ids } from './ids.ts';
import type { Attributes, EndedSpan, SpanKind } from './otlp.ts';
import { isSampled } from './sampling.ts';

export interface SpansOptions {
  readonly sampler: SamplerConfig;
  readonly ids: Ids;
  readonly clock: Pick<Clock, 'now' | 'elapsed'>;
  readonly record: (span: EndedSpan) => void;
}

export function createSpans(options: SpansOptions): Tracing {
  const means: Means = { ...options, conventions: createConventions() };
  return {
    call: call => new SpanOfCall(means, call),
    run: run => new SpanOfRun(means, run),
    attempt: attempt => new SpanOfAttempt(means, attempt),
  };
}

interface Means extends SpansOptions {
  readonly conventions: Conventions;
}

const NOTHING: Uint8Array = new Uint8Array();

abstract class TracedSpan implements OpenSpan, EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly parent: SpanIds | undefined;
  readonly tracestate: string | undefined;
  readonly startedAt: number;
  endedAt = 0;
  protected readonly means: Means;
  readonly #began: number;
  #status: number | undefined;
  #error: string | undefined;

  abstract readonly kind: SpanKind;
  abstract readonly linked: boolean;
  abstract readonly beginning: Uint8Array;
  abstract readonly app: Uint8Array;
  abstract readonly attributes: Attributes;

  constructor(means: Means, parent: SpanIds | undefined, tracestate: string | undefined) {
    const { sampler, ids, clock } = means;
    this.means = means;
    this.parent = parent;
    this.tracestate = tracestate;
    this.traceId = parent === undefined ? ids.traceId() : parent.traceId;
    this.spanId = ids.spanId();
    this.sampled = isSampled(sampler, this.traceId, parent);
    this.startedAt = clock.now();
    this.#began = clock.elapsed();
  }

  get context(): TraceContext {
    const traceparent = formatTraceparent(this);
    const { tracestate } = this;
    return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
  }

  get ending(): Uint8Array {
    return this.means.conventions.end[this.kind](this.#status, this.#error);
  }

  end({ status, error }: SpanEnd): void {
    if (!this.sampled) return;
    this.#status = status;
    this.#error = error;
    this.endedAt = this.startedAt + this.means.clock.elapsed() - this.#began;
    this.means.record(this);
  }
}

class SpanOfCall extends TracedSpan implements CallSpan {
  readonly kind = 'server';
  readonly linked = false;
  readonly #call: TracedCall;
  #end: CallSpanEnd | undefined;

  constructor(means: Means, call: TracedCall) {
    const { traceparent } = call;
    const parent = traceparent === undefined ? undefined : readTraceparent(traceparent);
    super(means, parent, parent && call.tracestate);
    this.#call = call;
  }

  get beginning(): Uint8Array {
    const { method, host = '' } = this.#call;
    return this.means.conventions.call(method, host);
  }

  get app(): Uint8Array {
    const { projectId, app } = this.#end!;
    return projectId === undefined ? NOTHING : this.means.conventions.app(projectId, app);
  }

  get attributes(): Attributes {
    const { url, runId } = this.#call;
    const query = url.indexOf('?');
    return ['url.path', query === -1 ? url : url.slice(0, query), 'afterword.run_id', runId];
  }

  override end(end: CallSpanEnd): void {
    this.#end = end;
    super.end(end);
  }
}

class SpanOfRun extends TracedSpan {
  readonly kind = 'consumer';
  readonly linked = true;
  readonly #run: TracedRun;

  constructor(means: Means, run: TracedRun) {
    super(means, run.call && readTraceparent(run.call.traceparent), run.call?.tracestate);
    this.#run = run;
  }

  get beginning(): Uint8Array {
    return this.means.conventions.run;
  }

  get app(): Uint8Array {
    const { projectId, app } = this.#run;
    return this.means.conventions.app(projectId, app);
  }

  get attributes(): Attributes {
    return ['afterword.run_id', this.#run.runId];
  }
}

class SpanOfAttempt extends TracedSpan {
  readonly kind = 'client';
  readonly linked = true;
  readonly #attempt: TracedAttempt;

  constructor(means: Means, attempt: TracedAttempt) {
    const { traceparent } = attempt;
    super(means, traceparent === undefined ? undefined : readTraceparent(traceparent), undefined);
    this.#attempt = attempt;
  }

  get beginning(): Uint8Array {
    return this.means.conventions.attempt(this.#attempt.origin);
  }

  get app(): Uint8Array {
    const { projectId, app } = this.#attempt;
    return this.means.conventions.app(projectId, app);
  }

  get attributes(): Attributes {
    const { runId, number, round } = this.#attempt;
    return ['afterword.run_id', runId, 'afterword.attempt', number, 'afterword.round', round];
  }
}
