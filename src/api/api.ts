/**
 * The management API, as a handler of requests that came over a listener and whose token is known to be good.
 * Nothing of it lies on the way of a call.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener, RequestError } from '@hono/node-server';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import { problemResponse } from './problems.ts';
import { type ApiCall, createRouter, type Router } from './router.ts';
import { createRunRoutes, type Runs } from './run-routes.ts';

export interface ApiOptions {
  readonly runs: Runs;
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

function createRoutes({ runs, log }: ApiOptions, refuse: Refusal): Router {
  const app = createRouter();
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }));
  app.route('/v4/:project_id/_runs', createRunRoutes({ runs, log }));
  app.notFound(c => refuse(new Problem('not_found'), c.env.call.runId));
  app.onError((error, c) => refuse(error, c.env.call.runId));
  return app;
}

function refuseMethod(_c: unknown, allowed: readonly string[]): never {
  throw new Problem('method_not_allowed', undefined, ['Allow', allowed.join(', ')]);
}
