/**
 * What becomes of a delivery after an attempt: settled, or due again after a gap. A round has at most three
 * attempts; the gaps between them are about 1 s, then about 4 s, spread by jitter so that deliveries that
 * failed together do not come back together.
 */
import { ATTEMPTS_PER_ROUND, type Next } from '../store/store.ts';
import type { Verdict } from './outcome.ts';

/** No gap is longer, in milliseconds. */
export const MAX_GAP = 5_000;

/** By the number of attempts made, in milliseconds. The jitter keeps the last one clear of MAX_GAP. */
const GAPS = [1_000, 4_000] as const;
const JITTER = 0.2;

export interface Attempted {
  readonly verdict: Verdict;
  /** Attempts of the round so far, this one included. */
  readonly attempts: number;
  /** When the attempt ended, in milliseconds since the epoch. */
  readonly now: number;
  /** At least 0, below 1. */
  readonly random: () => number;
}

export function afterAttempt({ verdict, attempts, now, random }: Attempted): Next {
  if (verdict === 'delivered') return { state: 'delivered' };
  if (verdict !== 'retry') return { state: 'failed', reason: verdict };
  const gap = attempts < ATTEMPTS_PER_ROUND ? GAPS[attempts - 1] : undefined;
  if (gap === undefined) return { state: 'failed', reason: 'exhausted' };
  const jitter = 1 - JITTER + 2 * JITTER * random();
  return { state: 'pending', dueAt: now + Math.round(gap * jitter) };
}
