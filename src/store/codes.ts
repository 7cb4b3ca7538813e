/**
 * The closed sets of the contract as the small numbers that rows hold: a value's place in its list. New
 * values go to the end. `pending` is 0, which the schema's indexes rely on.
 */
import type { RunState } from './runs.ts';
import type { AttemptTrigger, DeliveryState, FailureReason } from './store.ts';

export const STATES: readonly DeliveryState[] = ['pending', 'delivered', 'failed', 'cancelled'];
export const REASONS: readonly FailureReason[] = ['exhausted', 'rejected', 'blocked'];
export const TRIGGERS: readonly AttemptTrigger[] = ['automatic', 'manual'];
export const RUN_STATES: readonly RunState[] = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];
