/**
 * The spans of calls, runs and attempts, named and described by the semantic conventions of OpenTelemetry for
 * HTTP, with a few attributes of our own (`afterword.*`).
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
import type { Ids } from './ids.ts';
import type { Attributes, EndedSpan, SpanKind } from './otlp.ts';
import { isSampled } from './sampling.ts';
import type { SharedAttributes } from './shared-attributes.ts';

export interface SpansOptions {
  readonly sampler: SamplerConfig;
  readonly ids: Ids;
  readonly shared: SharedAttributes;
  readonly clock: Pick<Clock, 'now' | 'elapsed'>;
  readonly record: (span: EndedSpan) => void;
}

const ROUTE = '/v4/{project_id}/{app}/{rest}';
const SAME_FOR_ALL_CALLS: Attributes = ['http.route', ROUTE, 'url.scheme', 'http'];

/** Those that the conventions know; a name that a caller makes up is none for a span. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE', 'CONNECT'];
const CALL_NAMES: ReadonlyMap<string, string> = new Map(METHODS.map(name => [name, `${name} ${ROUTE}`]));

/** From which status on an answer is an error: of the one who asked, or of the one who was asked. */
const FIRST_ERROR: Readonly<Record<SpanKind, number>> = { client: 400, server: 500, consumer: 500 };

export function createSpans(options: SpansOptions): Tracing {
  const { shared } = options;
  return {
    call({ runId, method, url, host = '', caller }) {
      const query = url.indexOf('?');
      return new TracedSpan(options, {
        name: CALL_NAMES.get(method) ?? `HTTP ${ROUTE}`,
        kind: 'server',
        parent: caller && readTraceparent(caller.traceparent),
        tracestate: caller?.tracestate,
        shared: shared(`call ${method} ${host}`, () => [
          ...methodOf(method),
          ...serverOf(host, 80),
          ...SAME_FOR_ALL_CALLS,
        ]),
        attributes: ['url.path', query === -1 ? url : url.slice(0, query), 'afterword.run_id', runId],
      });
    },
    run({ runId, projectId, app, call }) {
      const parent = call && readTraceparent(call.traceparent);
      return new TracedSpan(options, {
        name: 'run',
        kind: 'consumer',
        parent,
        tracestate: call?.tracestate,
        link: parent,
        shared: shared(`app ${projectId}/${app}`, () => appOf(projectId, app)),
        attributes: ['afterword.run_id', runId],
      });
    },
    attempt({ runId, projectId, app, number, round, origin, traceparent }) {
      const parent = traceparent === undefined ? undefined : readTraceparent(traceparent);
      return new TracedSpan(options, {
        name: 'POST',
        kind: 'client',
        parent,
        link: parent,
        shared: shared(`attempt ${projectId}/${app} ${origin}`, () => [
          ...methodOf('POST'),
          ...serverOf(origin.slice(origin.indexOf('//') + 2), origin.startsWith('https:') ? 443 : 80),
          ...appOf(projectId, app),
        ]),
        attributes: ['afterword.run_id', runId, 'afterword.attempt', number, 'afterword.round', round],
      });
    },
  };
}

interface Beginning {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parent: SpanIds | undefined;
  readonly tracestate?: string | undefined;
  readonly link?: SpanIds | undefined;
  readonly shared: Uint8Array;
  readonly attributes: Attributes;
}

class TracedSpan implements CallSpan {
  readonly context: TraceContext;
  readonly #options: SpansOptions;
  readonly #ids: SpanIds;
  readonly #beginning: Beginning;
  readonly #startedAt: number;
  readonly #began: number;

  constructor(options: SpansOptions, beginning: Beginning) {
    const { sampler, ids, clock } = options;
    const { parent, tracestate } = beginning;
    const traceId = parent?.traceId ?? ids.traceId();
    this.#options = options;
    this.#beginning = beginning;
    this.#ids = { traceId, spanId: ids.spanId(), sampled: isSampled(sampler, traceId, parent) };
    this.#startedAt = clock.now();
    this.#began = clock.elapsed();
    const traceparent = formatTraceparent(this.#ids);
    this.context = tracestate === undefined ? { traceparent } : { traceparent, tracestate };
  }

  toApp({ method, host, path }: AppRequest): OpenSpan {
    const { shared } = this.#options;
    return new TracedSpan(this.#options, {
      name: CALL_NAMES.has(method) ? method : 'HTTP',
      kind: 'client',
      parent: this.#ids,
      tracestate: this.context.tracestate,
      shared: shared(`to app ${method} ${host}`, () => [...methodOf(method), ...serverOf(host, 80)]),
      attributes: ['url.full', `http://${host}${path}`],
    });
  }

  end(end: CallSpanEnd): void {
    const { traceId, spanId, sampled } = this.#ids;
    if (!sampled) return;
    const { record, clock, shared } = this.#options;
    const { name, kind, parent, tracestate, link, shared: first, attributes } = this.#beginning;
    const { status, error, projectId, app } = end;
    // What a caller did wrong is no error of the one who says so.
    const failed = status === undefined ? error !== undefined : status >= FIRST_ERROR[kind];
    const last = shared(`end ${status} ${error} ${failed} ${projectId}/${app}`, () => endOf(end, failed));
    record({
      traceId,
      spanId,
      sampled,
      parentSpanId: parent?.spanId,
      tracestate,
      name,
      kind,
      startedAt: this.#startedAt,
      endedAt: this.#startedAt + clock.elapsed() - this.#began,
      shared: [first, last],
      attributes,
      link,
      failed,
    });
  }
}

function endOf({ status, error, projectId, app }: CallSpanEnd, failed: boolean): Attributes {
  const attributes = appOf(projectId, app);
  if (status !== undefined) attributes.push('http.response.status_code', status);
  if (failed || error !== undefined) attributes.push('error.type', error ?? String(status));
  return attributes;
}

function methodOf(method: string): Attributes {
  if (CALL_NAMES.has(method)) return ['http.request.method', method];
  return ['http.request.method', '_OTHER', 'http.request.method_original', method];
}

const HOST = /^(.+?)(?::(\d{1,5}))?$/;

/** Of a host with a port or without; a caller may have written anything there. */
function serverOf(host: string, usualPort: number): Attributes {
  const [, address, port] = HOST.exec(host) ?? [];
  return address === undefined ? [] : ['server.address', address, 'server.port', Number(port ?? usualPort)];
}

function appOf(projectId: string | undefined, app: string | undefined): (string | number)[] {
  const attributes: (string | number)[] = [];
  if (projectId !== undefined) attributes.push('afterword.project_id', projectId);
  if (app !== undefined) attributes.push('afterword.app', app);
  return attributes;
}
