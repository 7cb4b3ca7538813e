/**
 * The admin listener: is the process alive (`/healthz`), can it take deliveries (`/readyz`), what has it
 * counted (`/metrics`, for holders of the admin token where there is one), the management API, for those whose
 * token is good (`/api/v1/…`), the dashboard, and the session of whoever looks at it (`/session`).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import { type AccessOptions, createAccess, isOwnName, isReading } from './api/access.ts';
import type { Api } from './api/api.ts';
import { createLogin, SESSION_PATH } from './api/login.ts';
import { ADMIN_PREFIX } from './api/mounts.ts';
import { createSessions } from './api/session.ts';
import type { Clock } from './clock.ts';
import type { Address } from './config/config.ts';
import type { Dashboard } from './dashboard.ts';
import { listenError, Problem } from './errors.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

/** Why the service is not ready, or undefined when it is. */
export type Readiness = () => 'starting' | 'stopping' | 'store_unavailable' | undefined;

export interface AdminOptions {
  readonly adminToken: string | undefined;
  readonly version: string;
  readonly authenticator: AccessOptions['authenticator'];
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly readiness: Readiness;
  readonly api: Api;
  readonly dashboard: Dashboard;
  readonly clock: Clock;
  readonly log: Logger;
}

const TOKEN_WANTED = [
  'a valid admin token is required\n',
  { 'WWW-Authenticate': 'Bearer realm="afterword admin"' },
] as const;
const FOREIGN = 'without an admin token, only the address of the listener is answered\n';

export interface Admin {
  listen(address: Address): Promise<AddressInfo>;
  stop(): Promise<void>;
}

export function createAdmin(options: AdminOptions): Admin {
  const stopping = new AbortController();
  let server: Server | undefined;
  return {
    async listen({ host, port }) {
      await options.dashboard.load();
      const answer = createAnswer(options, stopping.signal);
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

type Answer = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

function createAnswer(options: AdminOptions, signal: AbortSignal): Answer {
  const { adminToken, metrics, readiness, api, dashboard, clock, log } = options;
  const sessions = adminToken === undefined ? undefined : createSessions({ adminToken, clock });
  const access = createAccess({ ...options, sessions });
  const login = createLogin({ ...options, sessions, access });
  const serveApi = attended(log, async (req, res, runId) => {
    api(req, res, { projectId: await access.projectOf(req), runId, signal });
  });
  const serveSession = attended(log, async (req, res, runId) => {
    const { status, headers, body } = await login(req, runId);
    res.writeHead(status, { 'Cache-Control': 'no-store', 'X-Request-Id': runId, ...headers }).end(body);
  });

  return async (req, res) => {
    const path = req.url!.split('?', 1)[0]!;
    if (path.startsWith(ADMIN_PREFIX)) return serveApi(req, res);
    if (path === SESSION_PATH) return serveSession(req, res);
    if (!isReading(req.method)) return send(res, 405, 'method not allowed\n', { Allow: 'GET, HEAD' });
    if (path === '/healthz') return send(res, 200, 'ok\n');
    if (path === '/readyz') {
      const obstacle = readiness();
      return send(res, obstacle === undefined ? 200 : 503, `${obstacle ?? 'ready'}\n`);
    }
    if (path === '/metrics') {
      if (adminToken !== undefined && !access.isAdmin(req)) return send(res, 401, ...TOKEN_WANTED);
      return send(res, 200, await metrics.text(), { 'Content-Type': metrics.contentType });
    }
    if (!dashboard.has(path)) return send(res, 404, 'not found\n');
    if (adminToken === undefined && !isOwnName(req.headers.host)) return send(res, 403, FOREIGN);
    dashboard.serve(req, res, path);
  };
}

/** What is refused is answered with a problem, and all is told. */
function attended(
  log: Logger,
  serve: (req: IncomingMessage, res: ServerResponse, runId: string) => Promise<void>,
): Answer {
  return async (req, res) => {
    const runId = uuidv7();
    res.once('close', () => tell(log, req, res, runId));
    try {
      await serve(req, res, runId);
    } catch (error) {
      if (res.destroyed) return; // whoever asked has gone
      const refused = error instanceof Problem;
      if (!refused) log.error({ err: error as Error, run_id: runId }, 'an admin request failed');
      refuse(res, refused ? error : new Problem('internal_error'), runId);
    }
  };
}

/** What somebody has done is told; whoever only looks, looks often. */
function tell(log: Logger, { method, url }: IncomingMessage, res: ServerResponse, runId: string): void {
  const request = { run_id: runId, method, path: url!.split('?', 1)[0], status: res.statusCode };
  if (isReading(method)) log.debug(request, 'admin request');
  else log.info(request, 'admin request');
}

function send(
  res: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
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
