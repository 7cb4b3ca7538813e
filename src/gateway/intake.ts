/**
 * Takes calls in: has each checked in a fixed order (message, target, token, app, webhook, room in the
 * store) and starts its exchange with the app. Whatever a check throws is the caller's answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import type { AppConfig, Config } from '../config/config.ts';
import type { Accepted } from '../delivery/dispatcher.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Lease, Lessor } from '../runtime/host.ts';
import { createWays, pathAt, type Way, type Ways } from './apps.ts';
import type { Authenticator } from './auth.ts';
import { type CallEvents, type CallReport, createCallReport } from './call-report.ts';
import { Caller } from './caller.ts';
import { readWebhook } from './endpoint.ts';
import { Exchange, type ExchangeDeps, type ExchangeEvents } from './exchange.ts';
import type { Run } from './run.ts';
import { requestHeaders } from './headers.ts';
import { type MessageHead, readMessage } from './message.ts';
import { bodyAsIs, parametersOf, type RequestBody, takeBody } from './request-body.ts';
import { type CallTarget, functionName, parseTarget } from './route.ts';
import { createRunIds } from './run-id.ts';
import type { Spool } from './spool.ts';
import { responseOn, type Upgrade, UpgradeExchange } from './websocket.ts';

/** Where a call's answer goes besides. */
export interface Deliveries {
  /** False while deliveries cannot be stored. */
  readonly available: boolean;
  accept(delivery: Accepted): Promise<void>;
  pending(projectId: string): number;
}

export interface IntakeOptions {
  readonly config: Pick<Config, 'projects' | 'apps' | 'appTimeout' | 'webhooks'>;
  readonly authenticator: Authenticator;
  readonly policy: TargetPolicy;
  readonly deliveries: Deliveries;
  /** Apps that run here. */
  readonly host: Lessor;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: CallEvents & { lateCommit(): void };
}

/** A call that has passed its checks as far as they are the same for all. */
interface Admitted {
  readonly target: CallTarget;
  readonly message: MessageHead;
  readonly app: AppConfig;
}

export class Intake {
  readonly #options: IntakeOptions;
  readonly #ways: Ways;
  readonly #exchangeDeps: ExchangeDeps;
  readonly #report: CallReport;
  /** Calls that are not settled yet; those with a webhook may outlive their caller. */
  readonly #underWay = new Map<Run, Exchange>();
  #idle: (() => void) | undefined;
  readonly newRunId = createRunIds();

  constructor(options: IntakeOptions) {
    const { config, deliveries, spool, clock, log, events } = options;
    this.#options = options;
    this.#report = createCallReport({ clock, log, events });
    this.#ways = createWays({ appTimeout: config.appTimeout, host: options.host });
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

  take(req: IncomingMessage, res: ServerResponse): void {
    this.#check(req, new Caller(req, res, this.newRunId()), (admitted, caller, startedAt) =>
      this.#call(req, caller, admitted, startedAt),
    );
  }

  /** `joined` is told the app's connection, once the two have become one. */
  takeUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer, joined: (app: Duplex) => void): void {
    const res = responseOn(req, socket);
    const upgrade = { res, socket, head };
    this.#check(req, new Caller(req, res, this.newRunId()), (admitted, caller, startedAt) =>
      this.#upgrade(req, caller, admitted, startedAt, { ...upgrade, joined }),
    );
  }

  /** Resolves when every call is settled. */
  idle(): Promise<void> {
    return new Promise(resolve => {
      this.#idle = resolve;
      if (this.#underWay.size === 0) resolve();
    });
  }

  /** Ends the calls under way as failed; those with a webhook are delivered so. */
  failAll(problem: Problem): void {
    for (const exchange of this.#underWay.values()) exchange.fail(problem);
  }

  async close(): Promise<void> {
    await this.#ways.close();
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
    this.#underWay.set(run, exchange);
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
    const { config: app } = exchange.run;
    const way = this.#ways.to(app);
    const cortex = app.runtime === 'cortex';
    this.#withLease(exchange, way, lease => {
      const options = {
        method: req.method as Dispatcher.HttpMethod,
        path: pathAt(way, rest, query),
        headers: this.#headersFor(req, exchange.run, way),
        body: cortex ? parametersOf(body) : bodyAsIs(body),
      };
      lease.pool.dispatch(options, exchange);
    });
  }

  /** Sends once the app has a place for the call; what goes wrong until then is the caller's answer. */
  #withLease(exchange: Exchange, way: Way, send: (lease: Lease) => void): void {
    const enter = (lease: Lease): void => {
      if (exchange.enter(lease)) send(lease);
    };
    const fail = (error: unknown): void => exchange.fail(this.#problemOf(error, exchange.run.runId));
    try {
      const lease = way.lease(() => !exchange.over);
      if (lease instanceof Promise) lease.then(enter).catch(fail);
      else enter(lease);
    } catch (error) {
      fail(error);
    }
  }

  #headersFor(req: IncomingMessage, { config, runId }: Run, way: Way): string[] {
    return requestHeaders(req.rawHeaders, {
      runId,
      remoteAddress: req.socket.remoteAddress ?? '',
      host: way.host,
      forwardAuthorization: config.forwardAuthorization,
      parameters: config.runtime === 'cortex',
    });
  }

  #upgrade(
    req: IncomingMessage,
    caller: Caller,
    { target, message, app }: Admitted,
    startedAt: number,
    upgrade: Upgrade & { joined(app: Duplex): void },
  ): void {
    if (app.runtime !== 'custom') throw new Problem('bad_request', 'WebSockets are for custom apps');
    if (message.length !== 0) throw new Problem('bad_request', 'A WebSocket handshake has no body');
    const run = this.#run(req, caller, app, startedAt, undefined);
    const exchange = new UpgradeExchange(this.#exchangeDeps, run, caller, upgrade, {
      ...this.#follow(run, target.rest),
      joined: appSocket => upgrade.joined(appSocket),
    });
    this.#underWay.set(run, exchange);
    const way = this.#ways.to(app);
    this.#withLease(exchange, way, lease => {
      const path = pathAt(way, target.rest, target.query);
      const headers = this.#headersFor(req, run, way);
      lease.pool.dispatch({ method: 'GET', path, headers, upgrade: 'websocket' }, exchange);
    });
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

  #refuse(
    req: IncomingMessage,
    caller: Caller,
    error: unknown,
    startedAt: number,
    target: CallTarget | undefined,
  ): void {
    const problem = this.#problemOf(error, caller.runId);
    caller.problem(problem);
    this.#report.refused({ runId: caller.runId, method: req.method, target, startedAt, problem });
  }

  #follow(run: Run, path: string): ExchangeEvents {
    return {
      ended: end => this.#report.ended(run, path, end),
      settled: () => {
        this.#underWay.delete(run);
        if (this.#underWay.size === 0) this.#idle?.();
      },
    };
  }

  /** What is not a problem of the caller or the app is one of ours. */
  #problemOf(error: unknown, runId: string): Problem {
    if (error instanceof Problem) return error;
    this.#options.log.error({ run_id: runId, err: error as Error }, 'a call failed inside the service');
    return new Problem('internal_error');
  }
}
