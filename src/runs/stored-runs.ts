/**
 * Runs as the store has them, for whoever only asks: what became of them, and that one is to be cancelled.
 */
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { RunRecord, RunStore } from '../store/runs.ts';
import { createWaits, type Waits } from './waits.ts';

export interface StoredRuns extends Pick<RunStore, 'find' | 'result' | 'list' | 'cancel'> {
  /** The run, once it has ended, or as it is when the time is up or `signal` aborts. */
  wait(
    projectId: string | undefined,
    runId: string,
    options: { ms: number; signal: AbortSignal },
  ): Promise<RunRecord | undefined>;
}

export interface StoredRunsOptions {
  readonly runs: RunStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly waits?: Waits;
}

export function createStoredRuns(options: StoredRunsOptions): StoredRuns {
  const { runs, waits = createWaits(options) } = options;
  return {
    find: (projectId, runId) => runs.find(projectId, runId),
    result: (projectId, runId) => runs.result(projectId, runId),
    list: (filter, page) => runs.list(filter, page),
    cancel: (projectId, runId) => runs.cancel(projectId, runId),
    async wait(projectId, runId, waiting) {
      const run = await runs.find(projectId, runId);
      if (run === undefined || run.endedAt !== undefined) return run;
      await waits.wait(runId, waiting);
      return runs.find(projectId, runId);
    },
  };
}
