/**
 * Takes calls in: has each checked in a fixed order (message, target, token, app, webhook, room in the store)
 * and starts its exchange with the app, or, of an asynchronous one, has it stored. Whatever a check throws is
 * the caller's answer. What lies below the service's own paths is handed on after the token.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import type { AppConfig, Config } from '../config/config.ts';
import type { Accepted } from '../delivery/dispatcher.ts';
import type { RunIdentity } from '../delivery/envelope.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { Problem } from '../errors.ts';
import { Exchange, type ExchangeDeps, type ExchangeEvents } from '../exchange/exchange.ts';
import type { Keeping, Run } from '../exchange/run.ts';
import type { Spool } from '../exchange/spool.ts';
import { createWays, type Ways } from '../exchange/ways.ts';
import type { Logger } from '../log.ts';
import type { Lessor } from '../runtime/host.ts';
import type { CallSpan, TraceContext, Tracing } from '../trace.ts';
import { type AsyncCallDeps, createAsyncCall, type Runs } from './async-call.ts';
import type { Authenticator } from './auth.ts';
import { type CallEvents, type CallReport, createCallReport } from './call-report.ts';
import { Caller } from './caller.ts';
import { callerTrace, tracedCall } from './caller-trace.ts';
import { readWebhook, type RequestedWebhook } from './endpoint.ts';
import { type AppTarget, createForwarding, type Forwarding } from './forward.ts';
import { type MessageHead, readMessage } from './message.ts';
import { asksForAsync, readQuery } from './query.ts';
import { takeBody } from './request-body.ts';
import { type CallTarget, functionName, isOwnPath, parseTarget } from './route.ts';
import { createRunIds } from './run-id.ts';
import { responseOn, type Upgrade, UpgradeExchange } from './websocket.ts';

/** Where a call's answer goes besides. */
export interface Deliveries {
  /** False while deliveries cannot be stored. */
  readonly available: boolean;
  accept(delivery: Accepted): Promise<void>;
  pending(projectId: string): number;
}

/** What a request below the service's own paths comes with. Its token is checked. */
export interface ApiCall {
  readonly projectId: string;
  /** For `X-Request-Id`. */
  readonly runId: string;
  /** Aborts when the listener stops: whoever waits for something is to be answered then. */
  readonly signal: AbortSignal;
}

export type Api = (req: IncomingMessage, res: ServerResponse, call: ApiCall) => void;

export interface IntakeOptions {
  readonly config: Pick<Config, 'projects' | 'apps' | 'appTimeout' | 'webhooks' | 'async'>;
  readonly authenticator: Authenticator;
  readonly policy: TargetPolicy;
  readonly deliveries: Deliveries;
  readonly runs: Runs;
  /** Answers what lies below the service's own paths; without it there is nothing. */
  readonly api?: Api;
  /** Apps that run here. */
  readonly host: Lessor;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: CallEvents & { lateCommit(): void };
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

/** A request whose message, target and token are in order. */
interface Admitted {
  readonly req: IncomingMessage;
  readonly caller: Caller;
  readonly target: CallTarget;
  readonly message: MessageHead;
  /** By the clock's `elapsed`. */
  readonly startedAt: number;
  /** Where it is traced. */
  readonly span: CallSpan | undefined;
}

/** One that a check refuses, as far as it was read. */
type Refused = Omit<Admitted, 'message' | 'target'> & { readonly target: CallTarget | undefined };

/** What a call that has passed its checks asks for. */
interface Asked extends AppTarget {
  readonly app: AppConfig;
  readonly webhook: RequestedWebhook | undefined;
}

export class Intake {
  readonly #options: IntakeOptions;
  readonly #ways: Ways;
  readonly #forwarding: Forwarding;
  readonly #exchangeDeps: ExchangeDeps;
  readonly #asyncDeps: AsyncCallDeps;
  readonly #report: CallReport;
  /** Calls that are not settled yet, by run id; those with a webhook, and asynchronous ones, may outlive their caller. */
  readonly #underWay = new Map<string, { fail(problem: Problem): void }>();
  readonly #stopping = new AbortController();
  #idle: (() => void) | undefined;
  readonly newRunId = createRunIds();

  constructor(options: IntakeOptions) {
    const { config, runs, spool, clock, log, events } = options;
    const problemOf = (error: unknown, runId: string): Problem => this.#problemOf(error, runId);
    this.#options = options;
    this.#report = createCallReport({ clock, log, events });
    this.#ways = createWays({ appTimeout: config.appTimeout, host: options.host });
    this.#forwarding = createForwarding({ ways: this.#ways, problemOf });
    this.#exchangeDeps = {
      spool,
      clock,
      log,
      maxBody: config.webhooks.maxBody,
      commitWait: config.webhooks.commitWait,
      onLateCommit: () => events.lateCommit(),
    };
    this.#asyncDeps = { runs, spool, clock, log, maxRequest: config.async.maxRequest, problemOf };
  }

  take(req: IncomingMessage, res: ServerResponse): void {
    const { api } = this.#options;
    this.#check(req, new Caller(req, res, this.newRunId()), admitted => {
      if (api !== undefined && isOwnPath(admitted.target)) this.#serve(api, res, admitted);
      else this.#call(admitted);
    });
  }

  /** `joined` is told the app's connection, once the two have become one. */
  takeUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer, joined: (app: Duplex) => void): void {
    const res = responseOn(req, socket);
    this.#check(req, new Caller(req, res, this.newRunId()), admitted =>
      this.#upgrade(admitted, { res, socket, head, joined }),
    );
  }

  /** Whoever only waits for something to happen is to be answered now. */
  endWaits(): void {
    this.#stopping.abort();
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
    for (const call of this.#underWay.values()) call.fail(problem);
  }

  async close(): Promise<void> {
    await this.#ways.close();
  }

  /** The checks that come first, whatever the request is; `admit` goes on from there. */
  #check(req: IncomingMessage, caller: Caller, admit: (admitted: Admitted) => void): void {
    const { authenticator, clock, tracing } = this.#options;
    const startedAt = clock.elapsed();
    const span = tracing?.call(tracedCall(req, caller.runId));
    let target: CallTarget | undefined;
    const refuse = (error: unknown): void => this.#refuse({ req, caller, startedAt, span, target }, error);
    try {
      const message = readMessage(req);
      target = parseTarget(req.url!);
      const admitted = { req, caller, target, message, startedAt, span };
      const checking = authenticator.check(target.projectId, message.authorization);
      if (checking === undefined) admit(admitted);
      else checking.then(() => admit(admitted)).catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  #serve(api: Api, res: ServerResponse, { req, caller, target, message, startedAt, span }: Admitted): void {
    const { runId } = caller;
    const { method } = req;
    if (message.expectsContinue) caller.continue();
    res.once('close', () =>
      this.#report.served({ runId, method, target, startedAt, status: res.statusCode, span }),
    );
    api(req, res, { projectId: target.projectId, runId, signal: this.#stopping.signal });
  }

  #call(admitted: Admitted): void {
    const { req, target } = admitted;
    const { config, policy } = this.#options;
    const app = this.#appAt(target);
    const cortex = app.runtime === 'cortex';
    if (cortex && req.method !== 'POST')
      throw new Problem('method_not_allowed', undefined, ['Allow', 'POST']);
    const path = cortex ? `/${functionName(target.rest)}` : target.rest;
    const project = config.projects.get(target.projectId)!;
    const { rest: query, webhookEndpoint: endpoint, async } = readQuery(target.query);
    const webhook = readWebhook({ endpoint, rawHeaders: req.rawHeaders, project, policy });
    if (webhook !== undefined || async) this.#checkRoom(project);
    if (async) this.#store(admitted, { app, path, query, webhook });
    else this.#exchange(admitted, { app, path, query, webhook });
  }

  #appAt(target: CallTarget): AppConfig {
    const app = this.#options.config.apps.get(target.projectId)?.get(target.app);
    if (app === undefined) throw new Problem(isOwnPath(target) ? 'not_found' : 'app_not_found');
    return app;
  }

  #exchange(admitted: Admitted, asked: Asked): void {
    const { req, caller, message, span } = admitted;
    const run = this.#run(admitted, asked);
    const exchange = new Exchange(this.#exchangeDeps, run, caller, this.#follow(run, asked.path, span));
    this.#underWay.set(run.runId, exchange);
    if (message.length !== 0) {
      // A request that breaks off is no call, whoever waits for its answer.
      if (req.destroyed) {
        exchange.abandon();
        return;
      }
      req.once('close', () => {
        if (!req.complete) exchange.abandon();
      });
    }
    if (message.expectsContinue) caller.continue();
    takeBody(req, message.length, body => {
      if (body === req) caller.watchUpload(() => exchange.fail(new Problem('request_timeout')));
      this.#forwarding.call(exchange, req, asked, body);
    });
  }

  #store({ req, caller, message, startedAt, span }: Admitted, asked: Asked): void {
    const call = createAsyncCall(this.#asyncDeps, caller, { req, message, ...asked, trace: span?.context });
    this.#underWay.set(caller.runId, call);
    const { app, path, webhook } = asked;
    void call.take().then(({ runId, ...end }) => {
      const { projectId, name, runtime } = app;
      const about = { runId, projectId, app: name, runtime, method: req.method!, path, startedAt };
      this.#report.ended({ ...about, webhook: webhook !== undefined, async: true, span }, end);
      this.#settled(caller.runId);
    });
  }

  #upgrade(admitted: Admitted, upgrade: Upgrade & { joined(app: Duplex): void }): void {
    const { req, caller, target, message, span } = admitted;
    const app = this.#appAt(target);
    if (app.runtime !== 'custom') throw new Problem('bad_request', 'WebSockets are for custom apps');
    if (message.length !== 0) throw new Problem('bad_request', 'A WebSocket handshake has no body');
    if (asksForAsync(target.query)) throw new Problem('bad_request', 'A WebSocket cannot be asynchronous');
    const { rest: path, query } = target;
    const run = this.#run(admitted, { app, webhook: undefined });
    const exchange = new UpgradeExchange(this.#exchangeDeps, run, caller, upgrade, {
      ...this.#follow(run, path, span),
      joined: appSocket => upgrade.joined(appSocket),
    });
    this.#underWay.set(run.runId, exchange);
    this.#forwarding.upgrade(exchange, req, { path, query });
  }

  #run({ req, caller, startedAt, span }: Admitted, { app, webhook }: Pick<Asked, 'app' | 'webhook'>): Run {
    const identity = { runId: caller.runId, projectId: app.projectId, app: app.name };
    const keeping = webhook && this.#deliveryOf(identity, webhook, span?.context ?? callerTrace(req));
    return { ...identity, method: req.method!, config: app, keeping, startedAt, span };
  }

  #deliveryOf(run: RunIdentity, webhook: RequestedWebhook, trace: TraceContext | undefined): Keeping {
    const { deliveries } = this.#options;
    const of = trace === undefined ? run : { ...run, traceparent: trace.traceparent };
    return {
      keep: ({ statusCode, completedAt: createdAt, body }) =>
        deliveries.accept({ ...of, ...webhook, statusCode, body, createdAt }),
      keeps: problem => problem.ofApp,
    };
  }

  /** What could not be kept is refused before the function runs. */
  #checkRoom({ id, maxPending }: { id: string; maxPending: number }): void {
    const { deliveries } = this.#options;
    if (!deliveries.available) throw new Problem('store_unavailable', undefined, ['Retry-After', '1']);
    if (deliveries.pending(id) >= maxPending) {
      throw new Problem('too_many_pending', undefined, ['Retry-After', '5']);
    }
  }

  #refuse({ req, caller, startedAt, span, target }: Refused, error: unknown): void {
    const { runId } = caller;
    const problem = this.#problemOf(error, runId);
    caller.problem(problem);
    this.#report.refused({ runId, method: req.method, target, startedAt, problem, span });
  }

  #follow(run: Run, path: string, span: CallSpan | undefined): ExchangeEvents {
    const { runtime } = run.config;
    const webhook = run.keeping !== undefined;
    return {
      ended: end => this.#report.ended({ ...run, runtime, path, webhook, async: false, span }, end),
      settled: () => this.#settled(run.runId),
    };
  }

  #settled(runId: string): void {
    this.#underWay.delete(runId);
    if (this.#underWay.size === 0) this.#idle?.();
  }

  /** What is not a problem of the caller or the app is one of ours. */
  #problemOf(error: unknown, runId: string): Problem {
    if (error instanceof Problem) return error;
    this.#options.log.error({ run_id: runId, err: error as Error }, 'a call failed inside the service');
    return new Problem('internal_error');
  }
}
