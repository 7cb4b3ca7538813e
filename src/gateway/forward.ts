/**
 * Sends a call on to its app as soon as the app has a place for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Problem } from '../errors.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { requestHeaders } from '../exchange/headers.ts';
import type { Run } from '../exchange/run.ts';
import { pathAt, type Way, type Ways } from '../exchange/ways.ts';
import type { Lease } from '../runtime/host.ts';
import type { TraceContext } from '../trace.ts';
import { bodyAsIs, parametersOf, type RequestBody } from './request-body.ts';

export interface ForwardingDeps {
  readonly ways: Ways;
  /** What a caller is told of an error. */
  readonly problemOf: (error: unknown, runId: string) => Problem;
}

/** Path and query as the app gets them, below its own address. */
export interface AppTarget {
  readonly path: string;
  readonly query: string | undefined;
}

export interface Forwarding {
  call(exchange: Exchange, req: IncomingMessage, target: AppTarget, body: RequestBody): void;
  upgrade(exchange: Exchange, req: IncomingMessage, target: AppTarget): void;
}

export function createForwarding({ ways, problemOf }: ForwardingDeps): Forwarding {
  /** What goes wrong until the app has a place is the caller's answer. */
  function withLease(exchange: Exchange, way: Way, send: (lease: Lease) => void): void {
    const enter = (lease: Lease): void => {
      if (exchange.enter(lease)) send(lease);
    };
    const fail = (error: unknown): void => exchange.fail(problemOf(error, exchange.run.runId));
    try {
      const lease = way.lease(() => !exchange.over);
      if (lease instanceof Promise) lease.then(enter).catch(fail);
      else enter(lease);
    } catch (error) {
      fail(error);
    }
  }

  return {
    call(exchange, req, { path, query }, body) {
      const { config } = exchange.run;
      const way = ways.to(config);
      withLease(exchange, way, lease => {
        const options = {
          method: req.method as Dispatcher.HttpMethod,
          path: pathAt(way, path, query),
          headers: headersFor(req, exchange.run, way.host, exchange.run.span?.context),
          body: config.runtime === 'cortex' ? parametersOf(body) : bodyAsIs(body),
        };
        lease.pool.dispatch(options, exchange);
      });
    },
    upgrade(exchange, req, { path, query }) {
      const way = ways.to(exchange.run.config);
      withLease(exchange, way, lease => {
        const headers = headersFor(req, exchange.run, way.host, exchange.run.span?.context);
        const options = { method: 'GET', path: pathAt(way, path, query), headers } as const;
        lease.pool.dispatch({ ...options, upgrade: 'websocket' }, exchange);
      });
    },
  };
}

/** What the app gets of a caller's headers, `host` being its own name; that comes first. */
export function headersFor(
  req: IncomingMessage,
  { config, runId }: Pick<Run, 'config' | 'runId'>,
  host: string,
  trace: TraceContext | undefined,
): string[] {
  return requestHeaders(req.rawHeaders, {
    runId,
    remoteAddress: req.socket.remoteAddress ?? '',
    host,
    forwardAuthorization: config.forwardAuthorization,
    parameters: config.runtime === 'cortex',
    trace,
  });
}
