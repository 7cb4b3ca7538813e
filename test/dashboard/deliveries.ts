/**
 * Deliveries as the API tells them, for tests of what the page makes of them.
 */
import type { Delivery } from '../../dashboard/src/api/shapes.ts';

const START = Date.parse('2027-01-15T08:00:00Z');

/** Of the call that came in so many milliseconds after a moment. */
export function runId(after: number): string {
  const hex = (START + after).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

export function delivery(after: number, facts: Partial<Delivery> = {}): Delivery {
  return {
    run_id: runId(after),
    project_id: 'p-demo',
    app: 'hello',
    target: 'https://receiver.example/hook',
    status_code: 200,
    state: 'failed',
    reason: 'rejected',
    round: 1,
    attempt_count: 1,
    last_status: 500,
    created_at: new Date(START + after).toISOString(),
    ...facts,
  };
}

/** The next round of one, on its way. */
export const pendingAgain = { state: 'pending', reason: undefined, round: 2 } as const;

/** The next round of one, at its end. */
export const deliveredAgain = {
  state: 'delivered',
  reason: undefined,
  round: 2,
  attempt_count: 2,
  last_status: 200,
} as const;
