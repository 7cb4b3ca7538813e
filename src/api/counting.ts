/**
 * Counts the deliveries that a filter finds, in steps between which the store does other work, and for no
 * longer than somebody would want to wait.
 */
import type { Clock } from '../clock.ts';
import type { DeliveryFilter, Ledger } from '../store/ledger.ts';

const STEP = 1_000;
const LONGEST_MS = 5_000;

export interface CountingDeps {
  readonly ledger: Pick<Ledger, 'runIds'>;
  readonly clock: Clock;
  /** Whoever asked has gone. */
  readonly signal: AbortSignal;
}

export interface Counting {
  readonly matching: number;
  /** False: there are at least so many. */
  readonly exact: boolean;
}

export async function countMatching(
  { ledger, clock, signal }: CountingDeps,
  filter: DeliveryFilter,
): Promise<Counting> {
  const began = clock.elapsed();
  let matching = 0;
  let before: string | undefined;
  do {
    const page = { limit: STEP, ...(before !== undefined && { before }) };
    const { runIds, next } = await ledger.runIds(filter, page);
    matching += runIds.length;
    before = next;
  } while (before !== undefined && !signal.aborted && clock.elapsed() - began < LONGEST_MS);
  return { matching, exact: before === undefined };
}
