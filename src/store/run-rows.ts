/** Rows of runs, which both stores read in the same form, as the records that they stand for. */
import { REASONS, RUN_STATES, STATES } from './codes.ts';
import type { RunDelivery, RunRecord, RunState } from './runs.ts';

/** How a store's database tells a yes from a no. */
type Flag = boolean | number;

export interface RunRow {
  readonly project: string;
  readonly app: string;
  readonly created_at: number;
  readonly target: string | null;
  readonly starts: number;
  readonly started_at: number | null;
  /** Its present owner has begun it. */
  readonly begun: Flag;
  /** It is marked to be cancelled. */
  readonly cancelled: Flag;
  /** Of one that has ended: null before. */
  readonly state: number | null;
  readonly status: number | null;
  readonly error: string | null;
  readonly ended_at: number | null;
  /** Of its delivery: null where there is none. */
  readonly delivery_state: number | null;
  readonly delivery_reason: number | null;
  readonly delivery_attempts: number;
}

export function runRecord(runId: string, row: RunRow): RunRecord {
  const state = stateOf(row);
  const delivery = deliveryOf(row);
  return {
    runId,
    projectId: row.project,
    app: row.app,
    state,
    createdAt: row.created_at,
    starts: row.starts,
    ...(row.started_at !== null && { startedAt: row.started_at }),
    ...(row.ended_at !== null && { endedAt: row.ended_at }),
    ...(row.status !== null && { statusCode: row.status }),
    ...(row.error !== null && { error: row.error }),
    cancelling: state === 'running' && Boolean(row.cancelled),
    ...(row.target !== null && { target: row.target }),
    ...(delivery && { delivery }),
  };
}

function stateOf({ state, begun, cancelled }: RunRow): RunState {
  if (state !== null) return RUN_STATES[state]!;
  if (begun) return 'running';
  return cancelled ? 'cancelled' : 'queued';
}

function deliveryOf(row: RunRow): RunDelivery | undefined {
  if (row.delivery_state === null) return undefined;
  return {
    state: STATES[row.delivery_state]!,
    ...(row.delivery_reason !== null && { reason: REASONS[row.delivery_reason]! }),
    attempts: row.delivery_attempts,
  };
}
