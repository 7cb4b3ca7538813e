/**
 * Writes a run as JSON: what is known of it, alone or before the answer that it ended with.
 */
import type { z } from '@hono/zod-openapi';
import type { RunRecord } from '../store/runs.ts';
import type { Run, RunFacts } from './run-contract.ts';

export function runJson(run: RunRecord): z.output<typeof Run> {
  const { runId, projectId, app, statusCode, error } = run;
  return {
    run_id: runId,
    project_id: projectId,
    app,
    ...factsOf(run),
    ...(statusCode !== undefined && { status_code: statusCode }),
    ...(error !== undefined && { error: { type: error } }),
  };
}

/** Stands in place of the opening brace of the run's answer, and repeats no key of it. */
export function openingOf(run: RunRecord): string {
  return `${JSON.stringify(factsOf(run)).slice(0, -1)},`;
}

export function factsOf(run: RunRecord): z.output<typeof RunFacts> {
  const { state, createdAt, startedAt, endedAt, starts, cancelling, target, delivery } = run;
  return {
    state,
    created_at: isoTime(createdAt),
    ...(startedAt !== undefined && { started_at: isoTime(startedAt) }),
    ...(endedAt !== undefined && { ended_at: isoTime(endedAt) }),
    starts,
    ...(cancelling && { cancelling }),
    ...(target !== undefined && { delivery: { target: shown(target), ...delivery } }),
  };
}

export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Receivers are often told apart by a secret in the query. */
function shown(target: string): string {
  const { origin, pathname } = new URL(target);
  return origin + pathname;
}
