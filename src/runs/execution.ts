/**
 * One claimed run, carried out.
 *
 * It waits for a place with its app, is begun in the store (which counts the start), and is sent; its answer is
 * kept, which ends it. An app that is down or starting is tried again, after pauses that grow, within the time
 * limit, which runs from the claim. The run also ends when that time is up, or when it is cancelled: the app
 * then sees its connection close.
 *
 * It is given up without an end when it is no longer this node's, when this node is no longer sure of that, and
 * when the service stops. Then others carry it out. The start counts, unless the app was never reached.
 */
import type { Clock } from '../clock.ts';
import type { AppConfig } from '../config/config.ts';
import { errorEnvelope, type RunIdentity } from '../delivery/envelope.ts';
import { Problem } from '../errors.ts';
import type { ExchangeDeps } from '../exchange/exchange.ts';
import type { KeptAnswer, Run } from '../exchange/run.ts';
import type { Way } from '../exchange/ways.ts';
import type { Lease } from '../runtime/host.ts';
import type { ClaimedRun } from '../store/runs.ts';
import type { Body, Store } from '../store/store.ts';
import type { OpenSpan, SpanEnd, TraceContext, Tracing } from '../trace.ts';
import { callTrace, requestOf } from './request.ts';
import { RunExchange } from './run-exchange.ts';

export interface ExecutionDeps {
  readonly store: Pick<Store, 'runs' | 'tenure'>;
  readonly clock: Clock;
  readonly exchange: ExchangeDeps;
  /** In milliseconds. */
  readonly timeout: number;
  /** Writes the end of a run; resolves once that is durable. */
  readonly end: (run: ClaimedRun, answer: KeptAnswer, trace: TraceContext | undefined) => Promise<void>;
  readonly events: RunEvents;
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

export interface RunEvents {
  /** A start is counted, so long after the run was accepted. */
  runBegun(waitedMs: number): void;
}

/** Where a run is sent. */
export interface Destination {
  readonly app: AppConfig;
  readonly way: Way;
}

/** Pauses between two tries to reach an app. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** What came of a try: nothing more is to be done, or it may be tried again. */
type Tried = 'over' | 'later';

export class Execution {
  readonly run: ClaimedRun;
  readonly #deps: ExecutionDeps;
  /** Set when the run is to end before it has an answer, or to be given up. */
  #verdict: Problem | 'given up' | undefined;
  readonly #decided = Promise.withResolvers<void>();
  #exchange: RunExchange | undefined;
  /** The tenure in which it was begun. */
  #begunIn: number | undefined;
  /** Why the app could not be reached the last time. */
  #obstacle: Problem | undefined;
  /** Where it is traced, and what that span ends with. */
  #span: OpenSpan | undefined;
  #ended: SpanEnd = { error: 'given_up' };

  constructor(deps: ExecutionDeps, run: ClaimedRun) {
    this.#deps = deps;
    this.run = run;
  }

  /** Up to its end, or until it is given up. */
  async carryOut(destination: Destination): Promise<void> {
    const { tracing } = this.#deps;
    this.#span = tracing?.run({ ...identityOf(this.run), call: callTrace(this.run) });
    await this.#carryOut(destination);
    this.#span?.end(this.#ended);
  }

  /** Ends it without its app. */
  async refuse(problem: Problem): Promise<void> {
    const { run } = this;
    const completedAt = this.#deps.clock.now();
    const statusCode = problem.status;
    const error = { type: problem.code, message: problem.message };
    const bytes = errorEnvelope(run, { statusCode }, error, { runTimeMs: 0, completedAt });
    await this.#end({ statusCode, completedAt, body: { bytes }, problem });
  }

  cancel(): void {
    this.#decide(new Problem('cancelled'));
  }

  /** Others are to carry it out. */
  giveUp(): void {
    this.#decide('given up');
  }

  async #carryOut(destination: Destination): Promise<void> {
    const { clock, timeout } = this.#deps;
    const cancel = clock.after(timeout, () => this.#expire());
    try {
      for (let pause = FIRST_PAUSE_MS; this.#verdict === undefined; ) {
        if ((await this.#try(destination)) === 'over') return;
        await this.#pause(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    } finally {
      cancel();
    }
    if (this.#verdict === 'given up') await this.#deps.store.runs.withdraw(this.run.ref);
    else await this.refuse(this.#verdict);
  }

  async #end(answer: KeptAnswer): Promise<void> {
    const { statusCode: status, problem } = answer;
    this.#ended = problem === undefined ? { status } : { status, error: problem.code };
    await this.#deps.end(this.run, answer, this.#span?.context ?? callTrace(this.run));
  }

  #expire(): void {
    const timedOut = new Problem('app_timeout', 'The run did not end in time');
    this.#decide(this.#exchange?.reached === true ? timedOut : (this.#obstacle ?? timedOut));
  }

  #decide(verdict: Problem | 'given up'): void {
    if (this.#verdict !== undefined) return;
    this.#verdict = verdict;
    this.#decided.resolve();
    if (verdict !== 'given up' && this.#exchange?.reached === true) this.#exchange.fail(verdict);
    else this.#exchange?.abandon();
  }

  async #try({ app, way }: Destination): Promise<Tried> {
    const lease = await this.#place(way);
    if (lease === undefined) return 'later';
    try {
      if (!(await this.#begin())) return 'over';
      const { store } = this.#deps;
      const body = await store.runs.body(this.run.ref);
      // From here to the sending there is no more waiting.
      if (this.#verdict === undefined && store.tenure !== this.#begunIn) this.giveUp();
      return this.#verdict === undefined ? await this.#call({ app, way }, lease, body) : 'later';
    } finally {
      lease.done();
    }
  }

  /** A place with the app, where there is one now. One that comes too late is given back. */
  async #place(way: Way): Promise<Lease | undefined> {
    const asked = (async () => way.lease(() => this.#verdict === undefined))().catch((error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      this.#obstacle = error;
      return undefined;
    });
    const lease = await Promise.race([asked, this.#decided.promise.then(() => undefined)]);
    if (lease === undefined) void asked.then(late => late?.done());
    return lease;
  }

  /** Counts the start, once. False: the run is not ours any more. */
  async #begin(): Promise<boolean> {
    if (this.#begunIn !== undefined) return true;
    const { store, clock, events } = this.#deps;
    const { tenure } = store;
    if (tenure === undefined) {
      this.giveUp();
      return true;
    }
    const now = clock.now();
    const beginning = await store.runs.begin(this.run.ref, now);
    if (beginning === 'begun') {
      this.#begunIn = tenure;
      events.runBegun(Math.max(0, now - this.run.createdAt));
    } else if (beginning === 'cancelled') this.cancel();
    return beginning !== 'lost';
  }

  async #call({ app, way }: Destination, lease: Lease, body: Body | undefined): Promise<Tried> {
    const exchange = new RunExchange(this.#deps.exchange, this.#runOf(app));
    this.#exchange = exchange;
    exchange.enter(lease);
    lease.pool.dispatch(requestOf(this.run, app, way, body, this.#span?.context), exchange);
    const kept = await exchange.settled();
    this.#exchange = undefined;
    if (this.#verdict instanceof Problem && this.#verdict.code === 'app_timeout') lease.timedOut();
    this.#obstacle = exchange.obstacle ?? this.#obstacle;
    return kept || exchange.reached ? 'over' : 'later';
  }

  #runOf(config: AppConfig): Run {
    const keeping = { keep: (answer: KeptAnswer) => this.#end(answer), keeps: () => true };
    const startedAt = this.#deps.clock.elapsed();
    return { ...identityOf(this.run), method: this.run.method, config, keeping, startedAt, span: this.#span };
  }

  /** Ends early when something is decided. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(ms, resolve);
    await Promise.race([promise, this.#decided.promise]);
    cancel();
  }
}

function identityOf({ runId, projectId, app }: ClaimedRun): RunIdentity {
  return { runId, projectId, app };
}
