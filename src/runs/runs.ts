/**
 * Asynchronous calls: takes them in, has them carried out where the role of the node wants it, and tells what
 * became of them. A run's end and its delivery are written together; the delivery is then in the hands of the
 * dispatcher, as that of any other call.
 */
import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { Accepted, Insert } from '../delivery/dispatcher.ts';
import type { Pending } from '../delivery/pending.ts';
import type { ExchangeDeps } from '../exchange/exchange.ts';
import type { KeptAnswer } from '../exchange/run.ts';
import type { Ways } from '../exchange/ways.ts';
import type { Logger } from '../log.ts';
import type { ClaimedRun, FinalRunState, NewRun, RunEnd, RunInsertion } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import type { TraceContext, Tracing } from '../trace.ts';
import { endOf } from './ending.ts';
import type { RunEvents } from './execution.ts';
import { createExecutor } from './executor.ts';
import { createStoredRuns, type StoredRuns } from './stored-runs.ts';
import { createWaits } from './waits.ts';

export interface RunsOptions {
  readonly config: Pick<Config, 'apps' | 'async'>;
  readonly store: Store;
  readonly pending: Pick<Pending, 'mark' | 'change'>;
  /** Makes a delivery durable and has it sent. */
  readonly deliver: (delivery: Accepted, insert: Insert) => Promise<void>;
  readonly ways: Ways;
  readonly exchange: ExchangeDeps;
  /** False: this node only takes them in, and others carry them out. */
  readonly executes: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: RunEvents & {
    runEnded(run: { state: FinalRunState }): void;
    storeFailed(operation: 'insert_run'): void;
  };
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

export interface Runs extends StoredRuns {
  /** How many are carried out here. */
  readonly held: number;
  start(): void;
  stop(options: { graceMs: number }): Promise<void>;
  /** Resolves once it is durable, and is carried out after that. */
  accept(run: NewRun): Promise<RunInsertion>;
}

export function createRuns(options: RunsOptions): Runs {
  const { config, store, pending, deliver, executes, clock, log, events } = options;
  const { runs } = store;
  const waits = createWaits({ runs, clock, log });
  const stored = createStoredRuns({ runs, clock, log, waits });
  const executor = createExecutor({ ...options, timeout: config.async.timeout, end });

  async function end(run: ClaimedRun, answer: KeptAnswer, trace: TraceContext | undefined): Promise<void> {
    const { mark } = pending;
    const ending = endOf(answer);
    if (!(await written(run, answer, ending, trace))) {
      log.debug({ run_id: run.runId }, 'the run is no longer ours');
      return;
    }
    pending.change(run.projectId, -1, mark);
    const { runId, projectId: project_id, app } = run;
    const { state, statusCode: status, error } = ending;
    log.info({ run_id: runId, project_id, app, state, status, error }, 'run');
    events.runEnded(ending);
    waits.ended(runId);
  }

  /** False: it is not this node's to end any more. */
  async function written(
    run: ClaimedRun,
    { body }: KeptAnswer,
    ending: RunEnd,
    trace: TraceContext | undefined,
  ): Promise<boolean> {
    const { ref, runId, projectId, app, webhook, unreadable } = run;
    // Without its secret, a delivery could not be signed.
    if (webhook === undefined || unreadable) {
      return (await runs.end(ref, ending, { result: body })) !== undefined;
    }
    const { statusCode, endedAt: createdAt } = ending;
    let ended = false;
    const of = { runId, projectId, app, ...webhook, ...(trace && { traceparent: trace.traceparent }) };
    await deliver({ ...of, statusCode, createdAt, body }, async delivery => {
      const done = await runs.end(ref, ending, { delivery });
      ended = done !== undefined;
      return done?.delivery;
    });
    return ended;
  }

  return {
    get held() {
      return executor.held;
    },
    start() {
      if (executes) executor.start();
    },
    stop: stopping => executor.stop(stopping),

    async accept(run) {
      const { projectId, app } = run;
      const { mark } = pending;
      pending.change(projectId, 1, mark);
      try {
        const insertion = await runs.insert(run);
        if (insertion.outcome !== 'inserted') pending.change(projectId, -1, mark);
        else executor.expect(config.apps.get(projectId)?.get(app));
        return insertion;
      } catch (error) {
        pending.change(projectId, -1, mark);
        events.storeFailed('insert_run');
        throw error;
      }
    },

    ...stored,
    async cancel(projectId, runId) {
      const marked = await stored.cancel(projectId, runId);
      if (marked) {
        executor.expect();
        executor.lookForCancelled();
      }
      return marked;
    },
  };
}
