/**
 * The admin listener: is the process alive (`/healthz`), can it take deliveries (`/readyz`), what has it
 * counted (`/metrics`, for holders of the admin token where there is one), and the management API, for those
 * whose token is good (`/api/v1/…`).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import { type Access, isAdminToken } from './api/access.ts';
import type { Api } from './api/api.ts';
import { ADMIN_PREFIX } from './api/mounts.ts';
import type { Address } from './config/config.ts';
import { listenError, Problem } from './errors.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

/** Why the service is not ready, or undefined when it is. */
export type Readiness = () => 'starting' | 'stopping' | 'store_unavailable' | undefined;

export interface AdminOptions {
  readonly token: string | undefined;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly readiness: Readiness;
  readonly access: Access;
  readonly api: Api;
  readonly log: Logger;
}

export interface Admin {
  listen(address: Address): Promise<AddressInfo>;
  stop(): Promise<void>;
}

export function createAdmin({ token, metrics, readiness, access, api, log }: AdminOptions): Admin {
  const stopping = new AbortController();
  let server: Server | undefined;

  async function serveApi(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const runId = uuidv7();
    res.once('close', () => tell(req, res, runId));
    try {
      api(req, res, { projectId: await access(req.headers), runId, signal: stopping.signal });
    } catch (error) {
      if (!(error instanceof Problem))
        log.error({ err: error as Error, run_id: runId }, 'a token was not checked');
      refuse(res, error instanceof Problem ? error : new Problem('internal_error'), runId);
    }
  }

  /** What somebody has done is told; whoever only looks, looks often. */
  function tell(
    { method, url }: IncomingMessage,
    { statusCode: status }: ServerResponse,
    runId: string,
  ): void {
    const request = { run_id: runId, method, path: url!.split('?', 1)[0], status };
    if (method === 'GET' || method === 'HEAD') log.debug(request, 'admin request');
    else log.info(request, 'admin request');
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url!.split('?', 1)[0]!;
    if (path.startsWith(ADMIN_PREFIX)) {
      await serveApi(req, res);
    } else if (req.method !== 'GET' && req.method !== 'HEAD') {
      send(res, 405, 'method not allowed\n', { Allow: 'GET, HEAD' });
    } else if (path === '/healthz') {
      send(res, 200, 'ok\n');
    } else if (path === '/readyz') {
      const obstacle = readiness();
      send(res, obstacle === undefined ? 200 : 503, `${obstacle ?? 'ready'}\n`);
    } else if (path !== '/metrics') {
      send(res, 404, 'not found\n');
    } else if (token !== undefined && !isAdminToken(req.headers.authorization, token)) {
      send(res, 401, 'a valid admin token is required\n', {
        'WWW-Authenticate': 'Bearer realm="afterword admin"',
      });
    } else {
      send(res, 200, await metrics.text(), { 'Content-Type': metrics.contentType });
    }
  }

  return {
    async listen({ host, port }) {
      const listening = createServer((req, res) => {
        answer(req, res).catch(() => send(res, 500, 'the metrics could not be read\n'));
      });
      server = listening;
      await new Promise<void>((resolve, reject) => {
        listening.once('error', error => reject(listenError(error, { host, port })));
        listening.listen({ host, port }, resolve);
      });
      return listening.address() as AddressInfo;
    },
    async stop() {
      if (server === undefined) return;
      stopping.abort();
      await setImmediate(); // a turn of the loop, in which those who look on are told
      const closed = new Promise(resolve => server!.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function send(res: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  res.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    ...headers,
  });
  res.end(text);
}

function refuse(res: ServerResponse, problem: Problem, runId: string): void {
  const known = [
    'Content-Type',
    'application/problem+json',
    'Cache-Control',
    'no-store',
    'X-Request-Id',
    runId,
  ];
  res.writeHead(problem.status, [...known, ...problem.headers]);
  res.end(problem.body(runId));
}
