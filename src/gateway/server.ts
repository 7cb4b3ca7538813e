/**
 * The public listener: takes a call in, has it checked in a fixed order (message, target, token, app,
 * webhook, room in the store), and starts its exchange with the app. Whatever a check throws is the
 * caller's answer.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import type { Address, AppConfig, Config } from '../config/config.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { listenError, Problem, type ProblemCode } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { NewDelivery } from '../store/store.ts';
import { type AppPools, createAppPools } from './apps.ts';
import type { Authenticator } from './auth.ts';
import { Caller } from './caller.ts';
import { readWebhook } from './endpoint.ts';
import { type CallEnd, Exchange, type ExchangeDeps, type ExchangeEvents, type Run } from './exchange.ts';
import { requestHeaders } from './headers.ts';
import { type MessageHead, readMessage } from './message.ts';
import { bodyAsIs, parametersOf, type RequestBody, takeBody } from './request-body.ts';
import { type CallTarget, functionName, parseTarget } from './route.ts';
import { createRunIds } from './run-id.ts';
import type { Spool } from './spool.ts';
import { isWebSocket, responseOn, type Upgrade, UpgradeExchange } from './websocket.ts';

/** Where a call's answer goes besides. */
export interface Deliveries {
  /** False while deliveries cannot be stored. */
  readonly available: boolean;
  accept(delivery: Omit<NewDelivery, 'owned'>): Promise<void>;
  pending(projectId: string): number;
}

/** What a call looked like, for metrics. */
export interface CallEvent extends CallEnd {
  readonly runtime: 'cortex' | 'custom' | 'none';
  readonly webhook: boolean;
  readonly durationMs: number;
}

export interface GatewayOptions {
  readonly config: Pick<Config, 'projects' | 'apps' | 'appTimeout' | 'webhooks'>;
  readonly authenticator: Authenticator;
  readonly policy: TargetPolicy;
  readonly deliveries: Deliveries;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: { call(event: CallEvent): void; lateCommit(): void };
}

export interface Gateway {
  listen(address: Address): Promise<AddressInfo>;
  /** Takes no more calls and lets those under way end, for at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 30_000;
const MAX_HEADER_BYTES = 32 * 1024;
const IDLE_CALLER_MS = 65_000;
/** Between two looks, while the listener stops, for connections whose call has ended. */
const CLOSE_IDLE_MS = 50;

export function createGateway(options: GatewayOptions): Gateway {
  return new PublicListener(options);
}

/** A call that has passed its checks as far as they are the same for all. */
interface Admitted {
  readonly target: CallTarget;
  readonly message: MessageHead;
  readonly app: AppConfig;
}

class PublicListener implements Gateway {
  readonly #options: GatewayOptions;
  readonly #pools: AppPools;
  readonly #newRunId = createRunIds();
  readonly #exchangeDeps: ExchangeDeps;
  readonly #connections = new Set<Socket>();
  /** Those that have left HTTP, or may, and what they are joined with: the server does not know them any more. */
  readonly #upgraded = new Set<Duplex>();
  #server: Server | undefined;
  #stopping = false;
  /** Calls that are not settled yet; those with a webhook may outlive their caller. */
  #underWay = 0;
  #idle: (() => void) | undefined;

  constructor(options: GatewayOptions) {
    const { config, deliveries, spool, clock, log, events } = options;
    this.#options = options;
    this.#pools = createAppPools(config);
    this.#exchangeDeps = {
      accept: delivery => deliveries.accept(delivery),
      spool,
      clock,
      log,
      maxBody: config.webhooks.maxBody,
      commitWait: config.webhooks.commitWait,
      onLateCommit: () => events.lateCommit(),
    };
  }

  async listen({ host, port }: Address): Promise<AddressInfo> {
    const server = createServer({
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: 0, // a body may take as long as it keeps coming
      keepAliveTimeout: IDLE_CALLER_MS,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: MAX_HEADER_BYTES,
      noDelay: true,
      optimizeEmptyRequests: true,
      requireHostHeader: false, // refused by the gateway itself, as a problem
      shouldUpgradeCallback: isWebSocket,
    });
    server.on('connection', socket => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.on('request', (req, res) => this.#take(req, res));
    server.on('checkContinue', (req, res) => this.#take(req, res));
    server.on('checkExpectation', (req, res) => this.#take(req, res));
    server.on('upgrade', (req, socket, head) => this.#takeUpgrade(req, socket, head));
    server.on('clientError', (error, socket) => refuseConnection(error, socket, this.#newRunId()));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', error => reject(listenError(error, { host, port })));
      server.listen({ host, port }, resolve);
    });
    return server.address() as AddressInfo;
  }

  async stop(graceMs: number): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#stopping = true;
    const closed = new Promise<void>(resolve => {
      server.close(() => resolve());
    });
    for (const socket of this.#upgraded) socket.destroy();
    this.#closeIdle(server);
    const closing = setInterval(() => this.#closeIdle(server), CLOSE_IDLE_MS);
    const idle = Promise.withResolvers<void>();
    this.#idle = idle.resolve;
    if (this.#underWay === 0) idle.resolve();
    const cancel = this.#options.clock.after(graceMs, () => {
      server.closeAllConnections();
      // Runs that have not ended by now fail, and are delivered as failed.
      void this.#pools.close().then(idle.resolve);
    });
    await closed;
    clearInterval(closing);
    await idle.promise;
    cancel();
    await this.#pools.close();
  }

  /** Of callers who wait with their next call, or have not sent one yet. */
  #closeIdle(server: Server): void {
    server.closeIdleConnections();
    for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy();
  }

  #take(req: IncomingMessage, res: ServerResponse): void {
    if (this.#stopping) res.shouldKeepAlive = false;
    this.#check(req, new Caller(req, res, this.#newRunId()), (admitted, caller, startedAt) =>
      this.#call(req, caller, admitted, startedAt),
    );
  }

  #takeUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    this.#track(socket);
    const res = responseOn(req, socket);
    const upgrade = { res, socket, head };
    this.#check(req, new Caller(req, res, this.#newRunId()), (admitted, caller, startedAt) =>
      this.#upgrade(req, caller, admitted, startedAt, upgrade),
    );
  }

  /** The checks that come first, whatever the call is; `admit` goes on from there. */
  #check(
    req: IncomingMessage,
    caller: Caller,
    admit: (admitted: Admitted, caller: Caller, startedAt: number) => void,
  ): void {
    const { authenticator, clock } = this.#options;
    const startedAt = clock.elapsed();
    let target: CallTarget | undefined;
    const refuse = (error: unknown): void => this.#refuse(req, caller, error, startedAt, target);
    try {
      const message = readMessage(req);
      target = parseTarget(req.url!);
      const { projectId } = target;
      const admitted = target;
      const proceed = (): void => {
        const app = this.#options.config.apps.get(projectId)?.get(admitted.app);
        if (app === undefined) throw new Problem('app_not_found');
        admit({ target: admitted, message, app }, caller, startedAt);
      };
      const checking = authenticator.check(projectId, message.authorization);
      if (checking === undefined) proceed();
      else checking.then(proceed).catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  #call(req: IncomingMessage, caller: Caller, { target, message, app }: Admitted, startedAt: number): void {
    const cortex = app.runtime === 'cortex';
    if (cortex && req.method !== 'POST')
      throw new Problem('method_not_allowed', undefined, ['Allow', 'POST']);
    const rest = cortex ? `/${functionName(target.rest)}` : target.rest;
    const { projects } = this.#options.config;
    const project = projects.get(target.projectId)!;
    const { query, webhook } = readWebhook({
      query: target.query,
      rawHeaders: req.rawHeaders,
      project,
      policy: this.#options.policy,
    });
    if (webhook !== undefined) this.#checkRoom(project);
    const run = this.#run(req, caller, app, startedAt, webhook);
    const exchange = new Exchange(this.#exchangeDeps, run, caller, this.#follow(run, rest));
    if (message.length !== 0) {
      // A request that breaks off is no call, whoever waits for its answer.
      req.once('close', () => {
        if (!req.complete) exchange.abandon();
      });
    }
    if (message.expectsContinue) caller.continue();
    takeBody(req, message.length, body => {
      if (body === req) caller.watchUpload(() => exchange.fail(new Problem('request_timeout')));
      this.#dispatch(exchange, req, rest, query, body);
    });
  }

  #dispatch(
    exchange: Exchange,
    req: IncomingMessage,
    rest: string,
    query: string | undefined,
    body: RequestBody,
  ): void {
    const { config: app, runId } = exchange.run;
    const cortex = app.runtime === 'cortex';
    try {
      const headers = requestHeaders(req.rawHeaders, {
        runId,
        remoteAddress: req.socket.remoteAddress ?? '',
        host: app.url.host,
        forwardAuthorization: app.forwardAuthorization,
        parameters: cortex,
      });
      const options = {
        method: req.method as Dispatcher.HttpMethod,
        path: pathAt(app, rest, query),
        headers,
        body: cortex ? parametersOf(body) : bodyAsIs(body),
      };
      this.#pools.of(app).dispatch(options, exchange);
    } catch (error) {
      exchange.fail(asProblem(error));
    }
  }

  #upgrade(
    req: IncomingMessage,
    caller: Caller,
    { target, message, app }: Admitted,
    startedAt: number,
    upgrade: Upgrade,
  ): void {
    if (app.runtime !== 'custom') throw new Problem('bad_request', 'WebSockets are for custom apps');
    if (message.length !== 0) throw new Problem('bad_request', 'A WebSocket handshake has no body');
    const run = this.#run(req, caller, app, startedAt, undefined);
    const exchange = new UpgradeExchange(this.#exchangeDeps, run, caller, upgrade, {
      ...this.#follow(run, target.rest),
      joined: appSocket => this.#track(appSocket),
    });
    const headers = requestHeaders(req.rawHeaders, {
      runId: run.runId,
      remoteAddress: req.socket.remoteAddress ?? '',
      host: app.url.host,
      forwardAuthorization: app.forwardAuthorization,
      parameters: false,
    });
    this.#pools
      .of(app)
      .dispatch(
        { method: 'GET', path: pathAt(app, target.rest, target.query), headers, upgrade: 'websocket' },
        exchange,
      );
  }

  #run(
    req: IncomingMessage,
    caller: Caller,
    app: AppConfig,
    startedAt: number,
    webhook: Run['webhook'],
  ): Run {
    const { projectId, name } = app;
    return {
      runId: caller.runId,
      projectId,
      app: name,
      method: req.method!,
      config: app,
      webhook,
      startedAt,
    };
  }

  /** A webhook that could not be kept is refused before the function runs. */
  #checkRoom({ id, maxPending }: { id: string; maxPending: number }): void {
    const { deliveries } = this.#options;
    if (!deliveries.available) throw new Problem('store_unavailable', undefined, ['Retry-After', '1']);
    if (deliveries.pending(id) >= maxPending) {
      throw new Problem('too_many_pending', undefined, ['Retry-After', '5']);
    }
  }

  #track(socket: Duplex): void {
    if (this.#stopping) socket.destroy();
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
  }

  #refuse(
    req: IncomingMessage,
    caller: Caller,
    error: unknown,
    startedAt: number,
    target: CallTarget | undefined,
  ): void {
    const problem = asProblem(error);
    if (problem.code === 'internal_error') {
      this.#options.log.error(
        { run_id: caller.runId, err: error as Error },
        'a call failed inside the service',
      );
    }
    caller.problem(problem);
    const durationMs = this.#options.clock.elapsed() - startedAt;
    const end = { status: problem.status, code: problem.code };
    this.#options.events.call({ ...end, runtime: 'none', webhook: false, durationMs });
    this.#options.log.info(
      {
        run_id: caller.runId,
        project_id: target?.projectId,
        app: target?.app,
        method: req.method,
        path: target?.rest,
        ...end,
        duration_ms: rounded(durationMs),
      },
      'call',
    );
  }

  /** Counts a call as under way until it is settled. */
  #follow(run: Run, path: string): ExchangeEvents {
    this.#underWay++;
    return {
      ended: end => this.#ended(run, path, end),
      settled: () => {
        if (--this.#underWay === 0) this.#idle?.();
      },
    };
  }

  #ended(run: Run, path: string, end: CallEnd): void {
    const { clock, events, log } = this.#options;
    const durationMs = clock.elapsed() - run.startedAt;
    const webhook = run.webhook !== undefined;
    events.call({ ...end, runtime: run.config.runtime, webhook, durationMs });
    log.info(
      {
        run_id: run.runId,
        project_id: run.projectId,
        app: run.app,
        method: run.method,
        path,
        ...end,
        duration_ms: rounded(durationMs),
        webhook,
      },
      'call',
    );
  }
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem('internal_error');
}

function pathAt({ url }: AppConfig, rest: string, query: string | undefined): string {
  const base = url.pathname === '/' ? '' : url.pathname.replace(/\/$/, '');
  return query === undefined ? base + rest : `${base}${rest}?${query}`;
}

const CLIENT_ERRORS: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** What the HTTP parser refuses never becomes a request: answered on the bare socket. */
function refuseConnection(error: NodeJS.ErrnoException, duplex: Duplex, runId: string): void {
  const socket = duplex as Socket & { _httpMessage?: ServerResponse };
  const current = socket._httpMessage;
  // While another answer is due, or under way, this one would be taken for it.
  if (!socket.writable || current?.req.complete || current?.headersSent) {
    socket.destroy();
    return;
  }
  const problem = new Problem(CLIENT_ERRORS[error.code ?? ''] ?? 'bad_request');
  const body = problem.body(runId);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${runId}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
