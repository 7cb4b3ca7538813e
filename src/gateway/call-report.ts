/**
 * What a call tells the outside when it ends: one log line and one event for the metrics. Neither the token,
 * nor the secret, nor any query appears.
 */
import type { Clock } from '../clock.ts';
import type { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { CallEnd } from './exchange.ts';
import type { Run } from './run.ts';
import type { CallTarget } from './route.ts';

/** What a call looked like, for metrics. */
export interface CallEvent extends CallEnd {
  readonly runtime: 'cortex' | 'custom' | 'none';
  readonly webhook: boolean;
  readonly durationMs: number;
}

export interface CallEvents {
  call(event: CallEvent): void;
}

/** A call that ended before it had an app, as far as it was read. */
export interface RefusedCall {
  readonly runId: string;
  readonly method: string | undefined;
  readonly target: CallTarget | undefined;
  readonly startedAt: number;
  readonly problem: Problem;
}

export interface CallReport {
  refused(call: RefusedCall): void;
  ended(run: Run, path: string, end: CallEnd): void;
}

interface CallReportOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: CallEvents;
}

export function createCallReport({ clock, log, events }: CallReportOptions): CallReport {
  return {
    refused({ runId, method, target, startedAt, problem }) {
      const durationMs = clock.elapsed() - startedAt;
      const end = { status: problem.status, code: problem.code };
      events.call({ ...end, runtime: 'none', webhook: false, durationMs });
      const { projectId, app, rest } = target ?? {};
      const call = { run_id: runId, project_id: projectId, app, method, path: rest };
      log.info({ ...call, ...end, duration_ms: rounded(durationMs) }, 'call');
    },
    ended({ runId, projectId, app, method, config, webhook: asked, startedAt }, path, end) {
      const durationMs = clock.elapsed() - startedAt;
      const webhook = asked !== undefined;
      events.call({ ...end, runtime: config.runtime, webhook, durationMs });
      const call = { run_id: runId, project_id: projectId, app, method, path };
      log.info({ ...call, ...end, duration_ms: rounded(durationMs), webhook }, 'call');
    },
  };
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;
