/**
 * The management API, as a handler of requests that came over a listener and whose token is known to be good.
 * Nothing of it lies on the way of a call.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener, RequestError } from '@hono/node-server';
import { methodNotAllowed } from 'hono/method-not-allowed';
import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { HostedState } from '../runtime/app-state.ts';
import type { Store } from '../store/store.ts';
import { createAppRoutes } from './app-routes.ts';
import { createBulkRoutes } from './bulk-routes.ts';
import { createDeliveryHeaders } from './delivery-request.ts';
import { createDeliveryRoutes } from './delivery-routes.ts';
import { openApiDocument } from './document.ts';
import { createLive } from './live.ts';
import { ADMIN_PREFIX, MOUNTS, ROUTES, type RouteName } from './mounts.ts';
import { problemResponse } from './problems.ts';
import { type ApiCall, createRouter, type Router } from './router.ts';
import { createRunRoutes, type Runs } from './run-routes.ts';
import { createStatsRoutes } from './stats-routes.ts';
import { createStreamRoutes } from './stream-routes.ts';

export interface ApiOptions {
  readonly config: Pick<Config, 'projects' | 'apps'>;
  readonly version: string;
  readonly store: Pick<Store, 'available' | 'find' | 'ledger' | 'stats'>;
  readonly runs: Runs;
  readonly policy: Pick<TargetPolicy, 'judgeUrl'>;
  /** Apps that the service runs. */
  readonly hosted: () => Promise<readonly HostedState[]>;
  /** There is a redelivery in bulk to be carried out. */
  readonly onJob: () => void;
  /** A delivery was cancelled. */
  readonly onCancelled?: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Api = (req: IncomingMessage, res: ServerResponse, call: ApiCall) => void;

export function createApi(options: ApiOptions): Api {
  const refuse = createRefusal(options.log);
  const routes = createRoutes(options, refuse);
  return (req, res, call) => {
    res.setHeader('X-Request-Id', call.runId);
    res.setHeader('Cache-Control', 'no-store');
    const answer = getRequestListener(request => routes.fetch(request, { call, res }), {
      hostname: 'localhost', // HTTP/1.0 has requests without one
      overrideGlobalObjects: false,
      errorHandler: error => refuse(error, call.runId),
    });
    void answer(req, res);
  };
}

type Refusal = (error: unknown, runId: string) => Response;

function createRefusal(log: Logger): Refusal {
  return (error, runId) => {
    if (error instanceof Problem) return problemResponse(error, runId);
    // A Host that makes no URL, for one.
    if (error instanceof RequestError) return problemResponse(new Problem('bad_request'), runId);
    log.error({ err: error, run_id: runId }, 'a request to the API failed');
    return problemResponse(new Problem('internal_error'), runId);
  };
}

function createRoutes(options: ApiOptions, refuse: Refusal): Router {
  const app = createRouter('not_found');
  const routers = createRouters(options);
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }));
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    for (const mount of Object.values(MOUNTS)) {
      app.route(mount(name).replace('{project_id}', ':project_id'), routers[name]);
    }
  }
  app.get(`${ADMIN_PREFIX}openapi.json`, c =>
    c.body(openApiDocument(options.version), 200, { 'Content-Type': 'application/json' }),
  );
  app.notFound(c => refuse(new Problem('not_found'), c.env.call.runId));
  app.onError((error, c) => refuse(error, c.env.call.runId));
  return app;
}

function createRouters(options: ApiOptions): Readonly<Record<RouteName, Router>> {
  const { config, version, store, log } = options;
  const { ledger } = store;
  const headers = createDeliveryHeaders({
    userAgent: `Afterword/${version}`,
    standardWebhooks: projectId => config.projects.get(projectId)?.standardWebhooks ?? false,
  });
  return {
    'deliveries/stream': createStreamRoutes({ ...options, live: createLive({ ledger, log }) }),
    'deliveries/redeliver': createBulkRoutes(options),
    deliveries: createDeliveryRoutes({ ...options, headers }),
    runs: createRunRoutes(options),
    stats: createStatsRoutes(options),
    apps: createAppRoutes(options),
  };
}

function refuseMethod(_c: unknown, allowed: readonly string[]): never {
  throw new Problem('method_not_allowed', undefined, ['Allow', allowed.join(', ')]);
}
