/**
 * One call between caller, app and store.
 *
 * The app's answer streams to the caller; where it is to be kept (with a webhook, or in the background) it is
 * captured on the way. When the answer is complete it is kept, and only then, or after `commitWait`, is the
 * very end released to the caller. A caller who hangs up ends a call whose answer is for nobody else; others go
 * on without it. What fails before the answer has begun becomes a problem (502, 504), what fails later a cut
 * connection; either is kept as an `error`.
 */
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { errorEnvelope, type Finish } from '../delivery/envelope.ts';
import { isEventStream } from '../delivery/result.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Lease } from '../runtime/host.ts';
import type { NewBody } from '../store/store.ts';
import type { Answer, AppHead } from './answer.ts';
import { createEnvelopeAnswer } from './answer-envelope.ts';
import { createPassedAnswer } from './answer-passed.ts';
import { appFailure, mayBeCrash } from './app-failure.ts';
import type { CallerSide } from './caller-side.ts';
import { decodeHeaders, decodeReason, headerValue, interimHeaders } from './headers.ts';
import type { Keeping, Run } from './run.ts';
import type { Spool } from './spool.ts';

export interface ExchangeDeps {
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly maxBody: number;
  /** How long the end of an answer waits until it is kept; for ever where absent. */
  readonly commitWait?: number;
  /** The store took longer than `commitWait`. */
  readonly onLateCommit?: () => void;
}

/** How a call ended, for its log line and metrics. */
export interface CallEnd {
  readonly status: number;
  readonly code?: string;
}

export interface ExchangeEvents {
  /** The caller has its answer, or will never have one. */
  ended(end: CallEnd): void;
  /** Nothing is left to do: the answer is kept, where it is to be. */
  settled(): void;
}

interface Complete {
  readonly statusCode: number;
  readonly finish: Finish;
  readonly body: () => NewBody | Promise<NewBody>;
  readonly problem?: Problem;
}

/** nginx's word for a caller who hung up: no status was sent. */
export const CALLER_GONE = 499;

export class Exchange implements Dispatcher.DispatchHandler {
  readonly deps: ExchangeDeps;
  readonly run: Run;
  readonly caller: CallerSide;
  readonly #on: ExchangeEvents;
  #controller: Dispatcher.DispatchController | undefined;
  #answer: Answer | undefined;
  #lease: Lease | undefined;
  #blocks = 0;
  #reached = false;
  #ended = false;

  constructor(deps: ExchangeDeps, run: Run, caller: CallerSide, on: ExchangeEvents) {
    this.deps = deps;
    this.run = run;
    this.caller = caller;
    this.#on = on;
    caller.onGone(() => this.#callerGone());
  }

  /** Nothing more is to happen between caller and app. */
  get over(): boolean {
    return this.#ended;
  }

  /** A connection to the app was there, and so the app may have seen something of the call. */
  get reached(): boolean {
    return this.#reached;
  }

  /** Takes the place that the app has for the call; false, and gives it back, where it comes too late. */
  enter(lease: Lease): boolean {
    if (this.#ended) {
      lease.done();
      return false;
    }
    this.#lease = lease;
    return true;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Error('the call has ended'));
    else this.#reached = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    message?: string,
  ): void {
    const headers = decodeHeaders(controller.rawHeaders);
    if (status < 200) {
      this.caller.inform(status, interimHeaders(headers));
      return;
    }
    const head: AppHead = { status, message: decodeReason(message), headers };
    const wrap = this.run.config.runtime === 'cortex' && !isEventStream(headerValue(headers, 'content-type'));
    this.#answer = wrap ? createEnvelopeAnswer(this, head) : createPassedAnswer(this, head);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#ended) this.#answer!.data(chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (!this.#ended) this.#answer!.end(decodeHeaders(controller.rawTrailers));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#ended) return;
    if (this.caller.uploadBroken) {
      this.abandon();
      return;
    }
    const problem = appFailure(error, this.#answer !== undefined);
    if (problem.code === 'app_timeout') this.#lease?.timedOut();
    const crashed = mayBeCrash(problem) ? this.#lease?.crashed?.() : undefined;
    if (crashed === undefined) this.fail(problem);
    else void crashed.then(yes => this.fail(yes ? new Problem('app_crashed') : problem));
  }

  /** Holds the app back until `unblock` has been called as often. */
  block(): void {
    if (this.#blocks++ === 0) this.#controller?.pause();
  }

  unblock(): void {
    if (--this.#blocks === 0) this.#controller?.resume();
  }

  /** The answer is complete at this moment. */
  finish(): Finish {
    const { clock } = this.deps;
    return { runTimeMs: clock.elapsed() - this.run.startedAt, completedAt: clock.now() };
  }

  /**
   * The answer is complete: keeps it where that is asked for, then lets `release` give the caller the end.
   */
  complete(
    statusCode: number,
    finish: Finish,
    body: () => NewBody | Promise<NewBody>,
    release: () => void,
  ): void {
    this.#close();
    const { keeping } = this.run;
    if (keeping === undefined) {
      this.#release(release);
      this.#end({ status: statusCode });
      return;
    }
    this.#keep(keeping, { statusCode, finish, body }, () => {
      this.#release(release);
      this.#on.ended({ status: this.caller.gone ? CALLER_GONE : statusCode });
    });
  }

  /** An answer that cannot be written, for whatever reason, costs its own caller and nobody else. */
  #release(release: () => void): void {
    try {
      release();
    } catch (error) {
      this.deps.log.error(
        { run_id: this.run.runId, err: error as Error },
        'an answer could not be passed on',
      );
      this.caller.cut();
    }
  }

  /** Something failed between app and caller. */
  fail(problem: Problem): void {
    if (this.#ended) return;
    this.#close();
    this.#controller?.abort(problem);
    this.#answer?.discard();
    const begun = this.caller.headSent;
    const statusCode = begun ? this.#answer!.statusCode : problem.status;
    if (begun) this.caller.cut();
    const end = { status: statusCode, code: problem.code };
    const { keeping } = this.run;
    if (keeping === undefined || !keeping.keeps(problem)) {
      if (!begun) this.caller.problem(problem);
      this.#end(end);
      return;
    }
    const finish = this.finish();
    const error = { type: problem.code, message: problem.message };
    const body = { bytes: errorEnvelope(this.run, { statusCode }, error, finish) };
    this.#keep(keeping, { statusCode, finish, body: () => body, problem }, () => {
      if (!begun) this.caller.problem(problem);
      this.#on.ended(end);
    });
  }

  #keep(keeping: Keeping, answer: Complete, release: () => void): void {
    const { clock, commitWait, onLateCommit } = this.deps;
    let released = false;
    let cancel = (): void => {};
    const settle = (): void => {
      if (released) return;
      released = true;
      cancel();
      release();
    };
    if (commitWait !== undefined) {
      cancel = clock.after(commitWait, () => {
        onLateCommit?.();
        settle();
      });
    }
    void store(keeping, answer)
      .catch(error => {
        this.deps.log.error({ run_id: this.run.runId, err: error as Error }, 'an answer could not be kept');
      })
      .then(settle)
      .finally(() => this.#on.settled());
  }

  #callerGone(): void {
    if (this.#ended || this.run.keeping !== undefined) return;
    this.#close();
    this.#controller?.abort(new Error('the caller hung up'));
    this.#answer?.discard();
    this.#end({ status: CALLER_GONE });
  }

  /** There is no call to go on with: its caller never sent all of it, or somebody else carries it out. */
  abandon(): void {
    if (this.#ended) return;
    this.#close();
    this.#controller?.abort(new Error('the call was given up'));
    this.#answer?.discard();
    this.#end({ status: CALLER_GONE });
  }

  /** Ends a call that leaves nothing to deliver. */
  #end(end: CallEnd): void {
    this.#on.ended(end);
    this.#on.settled();
  }

  /** The connection has become something other than a call; the app's place is taken until it closes. */
  handOver(status: number, connection: Duplex): void {
    this.#ended = true;
    connection.once('close', () => this.#lease?.done());
    this.#end({ status });
  }

  /** Nothing more is expected of the app. */
  #close(): void {
    this.#ended = true;
    this.#lease?.done();
  }
}

async function store(keeping: Keeping, { finish, body, ...answer }: Complete): Promise<void> {
  const made = body();
  const { completedAt } = finish;
  await keeping.keep({ ...answer, completedAt, body: made instanceof Promise ? await made : made });
}
