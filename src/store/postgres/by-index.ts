/**
 * How transactions begin whose statements are to go by indexes, in their order, and never further than they ask
 * for. Left to itself the planner may take it for better to read a whole day and to sort it, from counts that
 * were taken when there was little. What is on the way of a delivery has functions for this (migrations.ts);
 * what people ask for takes other forms all the time, and may cost two more trips to the server.
 */
const BY_INDEX = `
  SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
  SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
  SET LOCAL jit = off`;

/** All that is read is of one moment. */
export const READING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${BY_INDEX}`;

export const WRITING = `BEGIN; ${BY_INDEX}`;
