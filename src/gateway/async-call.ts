/**
 * Takes one asynchronous call in. Its body is read to the end, the run is stored, and then, never before the
 * run is durable, the caller gets its 202. A caller who breaks off while it sends has made no run and leaves
 * nothing behind; one who leaves after that has.
 */
import type { Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import type { AppConfig } from '../config/config.ts';
import { Problem } from '../errors.ts';
import { type CallEnd, CALLER_GONE } from '../exchange/exchange.ts';
import type { Spool } from '../exchange/spool.ts';
import type { Logger } from '../log.ts';
import { type NewRun, REQUEST_SUFFIX, type RunInsertion } from '../store/runs.ts';
import type { TraceContext } from '../trace.ts';
import type { Caller } from './caller.ts';
import type { RequestedWebhook } from './endpoint.ts';
import { headersFor } from './forward.ts';
import { beginFingerprint, readIdempotencyKey } from './idempotency.ts';
import { bodyTooLarge, IncomingBody } from './incoming-body.ts';
import type { MessageHead } from './message.ts';
import { ParametersCheck } from './request-body.ts';

export interface Runs {
  /** Resolves once the run is durable. */
  accept(run: NewRun): Promise<RunInsertion>;
}

export interface AsyncCallDeps {
  readonly runs: Runs;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of a body. */
  readonly maxRequest: number;
  /** What a caller is told of an error. */
  readonly problemOf: (error: unknown, runId: string) => Problem;
}

/** What is known of the call before its body. */
export interface AsyncRequest {
  readonly req: IncomingMessage;
  readonly message: MessageHead;
  readonly app: AppConfig;
  /** As the app gets them, below its own address. */
  readonly path: string;
  readonly query: string | undefined;
  readonly webhook: RequestedWebhook | undefined;
  /** Where the call is traced. */
  readonly trace: TraceContext | undefined;
}

/** How it ended; the run is the one that the caller was told of. */
export interface AsyncCallEnd extends CallEnd {
  readonly runId: string;
}

/** A call with an `Idempotency-Key`. */
interface NamedCall {
  readonly key: string;
  readonly fingerprint: Hash;
}

/** Throws a Problem where the head of the request alone refuses it. */
export function createAsyncCall(deps: AsyncCallDeps, caller: Caller, request: AsyncRequest): AsyncCall {
  const named = readName(request);
  const { length = 0 } = request.message;
  if (length > deps.maxRequest) throw bodyTooLarge(deps.maxRequest);
  return new AsyncCall(deps, caller, request, named);
}

function readName({ req, app, path, query, webhook }: AsyncRequest): NamedCall | undefined {
  const key = readIdempotencyKey(req.rawHeaders);
  if (key === undefined) return undefined;
  const shape = { app: app.name, method: req.method!, path, query, target: webhook?.target };
  return { key, fingerprint: beginFingerprint(shape) };
}

class AsyncCall {
  readonly #deps: AsyncCallDeps;
  readonly #caller: Caller;
  readonly #request: AsyncRequest;
  readonly #named: NamedCall | undefined;
  readonly #parameters: ParametersCheck | undefined;
  readonly #body: IncomingBody;

  constructor(deps: AsyncCallDeps, caller: Caller, request: AsyncRequest, named: NamedCall | undefined) {
    const { req, app } = request;
    const { spool, log, maxRequest: limit } = deps;
    this.#deps = deps;
    this.#caller = caller;
    this.#request = request;
    this.#named = named;
    if (app.runtime === 'cortex') this.#parameters = new ParametersCheck();
    const inspect = (chunk: Uint8Array): void => {
      this.#parameters?.push(chunk);
      named?.fingerprint.update(chunk);
    };
    this.#body = new IncomingBody({ req, limit, spool, name: caller.runId + REQUEST_SUFFIX, log, inspect });
  }

  /** Resolves when nothing is left to do. */
  async take(): Promise<AsyncCallEnd> {
    const { runId } = this.#caller;
    try {
      if (await this.#readBody()) return this.#answer(await this.#store());
      await this.#body.discard();
      return { runId, status: CALLER_GONE };
    } catch (error) {
      const problem = this.#deps.problemOf(error, runId);
      this.#caller.problem(problem);
      await this.#body.discard();
      return { runId, status: problem.status, code: problem.code };
    }
  }

  /** Refuses a call that has not come whole yet; others go on. */
  fail(problem: Problem): void {
    this.#body.fail(problem);
  }

  async #readBody(): Promise<boolean> {
    const { message } = this.#request;
    this.#caller.onGone(() => {});
    if (message.expectsContinue) this.#caller.continue();
    if (message.length === 0) return true;
    this.#caller.watchUpload(() => this.fail(new Problem('request_timeout')));
    const whole = await this.#body.read();
    if (whole) this.#parameters?.end();
    return whole;
  }

  async #store(): Promise<RunInsertion> {
    const { runs, log } = this.#deps;
    try {
      const stored = await runs.accept(await this.#run());
      this.#body.handOver();
      return stored;
    } catch (error) {
      log.error({ run_id: this.#caller.runId, err: error as Error }, 'a run could not be stored');
      throw new Problem('store_unavailable', undefined, ['Retry-After', '1']);
    }
  }

  async #run(): Promise<NewRun> {
    const { req, app, path, query, webhook, trace } = this.#request;
    const { runId } = this.#caller;
    const body = await this.#body.keep();
    // `Host` comes first, and is for whoever sends the request to the app.
    const [, , ...headers] = headersFor(req, { config: app, runId }, '', trace);
    return {
      runId,
      projectId: app.projectId,
      app: app.name,
      createdAt: this.#deps.clock.now(),
      method: req.method!,
      path,
      headers,
      ...(query !== undefined && { query }),
      ...(body !== undefined && { body }),
      ...(webhook !== undefined && { webhook }),
      ...(this.#named !== undefined && {
        idempotency: { key: this.#named.key, fingerprint: this.#named.fingerprint.digest() },
      }),
    };
  }

  #answer(stored: RunInsertion): AsyncCallEnd {
    if (stored.outcome === 'conflict') throw new Problem('idempotency_key_reused');
    const { req, app } = this.#request;
    const runId = stored.outcome === 'repeated' ? stored.runId : this.#caller.runId;
    const body = Buffer.from(JSON.stringify({ run_id: runId }));
    const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];
    headers.push('X-Request-Id', runId, 'Location', `/v4/${app.projectId}/_runs/${runId}`);
    if (stored.outcome === 'repeated') headers.push('Idempotency-Replayed', 'true');
    this.#caller.head(202, undefined, headers);
    this.#caller.end(req.method === 'HEAD' ? undefined : body);
    return { runId, status: this.#caller.gone ? CALLER_GONE : 202 };
  }
}
