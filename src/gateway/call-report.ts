/**
 * What a call tells the outside when it ends: one log line, one event for the metrics, and its span where it is
 * traced. Neither the token, nor the secret, nor any query appears.
 */
import type { Clock } from '../clock.ts';
import type { Runtime } from '../config/config.ts';
import type { Problem, ProblemCode } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { CallEnd } from '../exchange/exchange.ts';
import type { CallSpan } from '../trace.ts';
import type { CallTarget } from './route.ts';

/** What a call looked like, for metrics. */
export interface CallEvent extends CallEnd {
  /** Undefined where the call is nobody's: it was not read so far, or its token was not good. */
  readonly projectId: string | undefined;
  readonly runtime: Runtime | 'none';
  readonly webhook: boolean;
  readonly async: boolean;
  readonly durationMs: number;
}

export interface CallEvents {
  call(event: CallEvent): void;
}

/** Where it is traced. */
interface Traced {
  readonly span: CallSpan | undefined;
}

/** A call that ended before it had an app, as far as it was read. */
export interface RefusedCall extends Traced {
  readonly runId: string;
  readonly method: string | undefined;
  readonly target: CallTarget | undefined;
  readonly startedAt: number;
  readonly problem: Problem;
}

/** A call that had an app. */
export interface EndedCall extends Traced {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
  readonly runtime: Runtime;
  readonly method: string;
  readonly path: string;
  readonly startedAt: number;
  readonly webhook: boolean;
  readonly async: boolean;
}

/** A request that the service has answered itself. */
export interface ServedRequest extends Traced {
  readonly runId: string;
  readonly method: string | undefined;
  readonly target: CallTarget;
  readonly startedAt: number;
  readonly status: number;
}

export interface CallReport {
  refused(call: RefusedCall): void;
  ended(call: EndedCall, end: CallEnd): void;
  served(request: ServedRequest): void;
}

interface CallReportOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: CallEvents;
}

/** Problems of callers who are not the project's. */
const STRANGERS: ReadonlySet<ProblemCode> = new Set(['unauthorized', 'wrong_project']);

export function createCallReport({ clock, log, events }: CallReportOptions): CallReport {
  return {
    refused({ runId, method, target, startedAt, problem, span }) {
      const durationMs = clock.elapsed() - startedAt;
      const end = { status: problem.status, code: problem.code };
      const { projectId, app, rest } = target ?? {};
      const own = STRANGERS.has(problem.code) ? undefined : projectId;
      events.call({ ...end, projectId: own, runtime: 'none', webhook: false, async: false, durationMs });
      span?.end({ status: end.status, error: end.code, projectId, app });
      const call = { run_id: runId, project_id: projectId, app, method, path: rest };
      log.info({ ...call, ...end, duration_ms: rounded(durationMs) }, 'call');
    },
    ended({ runId, projectId, app, runtime, method, path, startedAt, webhook, async, span }, end) {
      const durationMs = clock.elapsed() - startedAt;
      events.call({ ...end, projectId, runtime, webhook, async, durationMs });
      span?.end({ status: end.status, error: end.code, projectId, app });
      const call = { run_id: runId, project_id: projectId, app, method, path };
      const asked = async ? { webhook, async } : { webhook };
      log.info({ ...call, ...end, duration_ms: rounded(durationMs), ...asked }, 'call');
    },
    served({ runId, method, target: { projectId, app, rest }, startedAt, status, span }) {
      span?.end({ status, projectId });
      const request = { run_id: runId, project_id: projectId, method, path: `/${app}${rest}` };
      const duration_ms = rounded(clock.elapsed() - startedAt);
      log.info({ ...request, status, duration_ms }, 'request');
    },
  };
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;
