/**
 * The spans of calls, runs and attempts. This runs for every call, and is made to take little of it: what is
 * known beforehand is written beforehand, and a span is itself what is written when it ends.
 *
 * An attempt and a run happen after their call: each is in its call's trace, and so kept where that is, and
 * linked to it besides, as is the custom for what is caused and not waited for.
 */
import type { Clock } from '../clock.ts';
import type { SamplerConfig } from '../config/config.ts';
import {
  type AppRequest,
  type CallSpan,
  type CallSpanEnd,
  formatTraceparent,
  type OpenSpan,
  readTraceparent,
  type SpanIds,
  type TraceContext,
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

const NOTHING: Uint8Array = new Uint8Array();

export function createSpans(options: SpansOptions): Tracing {
  const conventions = createConventions();
  const means: Means = { ...options, conventions };
  return {
    call({ runId, method, url, host = '', traceparent, tracestate }) {
      const query = url.indexOf('?');
      const parent = traceparent === undefined ? undefined : readTraceparent(traceparent);
      return new TracedSpan(means, {
        kind: 'server',
        parent,
        tracestate: parent && tracestate,
        linked: false,
        beginning: conventions.call(method, host),
        app: NOTHING,
        attributes: ['url.path', query === -1 ? url : url.slice(0, query), 'afterword.run_id', runId],
      });
    },
    run({ runId, projectId, app, call }) {
      return new TracedSpan(means, {
        kind: 'consumer',
        parent: call && readTraceparent(call.traceparent),
        tracestate: call?.tracestate,
        linked: true,
        beginning: conventions.run,
        app: conventions.app(projectId, app),
        attributes: ['afterword.run_id', runId],
      });
    },
    attempt({ runId, projectId, app, number, round, origin, traceparent }) {
      return new TracedSpan(means, {
        kind: 'client',
        parent: traceparent === undefined ? undefined : readTraceparent(traceparent),
        tracestate: undefined,
        linked: true,
        beginning: conventions.request('POST', origin),
        app: conventions.app(projectId, app),
        attributes: ['afterword.run_id', runId, 'afterword.attempt', number, 'afterword.round', round],
      });
    },
  };
}

interface Means extends SpansOptions {
  readonly conventions: Conventions;
}

interface Beginning
  extends Pick<EndedSpan, 'parent' | 'tracestate' | 'linked' | 'beginning' | 'app' | 'attributes'> {
  readonly kind: SpanKind;
}

class TracedSpan implements CallSpan, EndedSpan {
  readonly context: TraceContext;
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly parent: SpanIds | undefined;
  readonly tracestate: string | undefined;
  readonly linked: boolean;
  readonly beginning: Uint8Array;
  readonly attributes: Attributes;
  readonly startedAt: number;
  app: Uint8Array;
  ending = NOTHING;
  endedAt = 0;
  readonly #means: Means;
  readonly #kind: SpanKind;
  readonly #began: number;

  constructor(means: Means, { kind, parent, tracestate, linked, beginning, app, attributes }: Beginning) {
    const { sampler, ids, clock } = means;
    this.#means = means;
    this.#kind = kind;
    this.traceId = parent === undefined ? ids.traceId() : parent.traceId;
    this.spanId = ids.spanId();
    this.sampled = isSampled(sampler, this.traceId, parent);
    this.parent = parent;
    this.tracestate = tracestate;
    this.linked = linked;
    this.beginning = beginning;
    this.app = app;
    this.attributes = attributes;
    this.startedAt = clock.now();
    this.#began = clock.elapsed();
    const traceparent = formatTraceparent(this);
    this.context = tracestate === undefined ? { traceparent } : { traceparent, tracestate };
  }

  toApp({ method, host, path }: AppRequest): OpenSpan {
    return new TracedSpan(this.#means, {
      kind: 'client',
      parent: this,
      tracestate: this.tracestate,
      linked: false,
      beginning: this.#means.conventions.request(method, host),
      app: NOTHING,
      attributes: ['url.full', `http://${host}${path}`],
    });
  }

  end({ status, error, projectId, app }: CallSpanEnd): void {
    if (!this.sampled) return;
    const { record, clock, conventions } = this.#means;
    if (projectId !== undefined) this.app = conventions.app(projectId, app);
    this.ending = conventions.end[this.#kind](status, error);
    this.endedAt = this.startedAt + clock.elapsed() - this.#began;
    record(this);
  }
}
