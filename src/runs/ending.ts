/** How a run ends, by its answer: pure decisions. */
import { errorTypeIn } from '../delivery/envelope.ts';
import { Problem } from '../errors.ts';
import type { KeptAnswer } from '../exchange/run.ts';
import type { ClaimedRun, FinalRunState, RunEnd } from '../store/runs.ts';

/** The first status that tells of an error (RFC 9110, section 15). */
const FIRST_ERROR = 400;

export function endOf({ statusCode, completedAt, body, problem }: KeptAnswer): RunEnd {
  const error = problem?.code ?? ('bytes' in body ? errorTypeIn(body.bytes) : undefined);
  return {
    state: stateOf(statusCode, error, problem),
    endedAt: completedAt,
    statusCode,
    ...(error !== undefined && { error }),
  };
}

function stateOf(statusCode: number, error: string | undefined, problem: Problem | undefined): FinalRunState {
  if (problem?.code === 'cancelled') return 'cancelled';
  return error === undefined && statusCode < FIRST_ERROR ? 'succeeded' : 'failed';
}

/** Why a run is to be ended as soon as it is claimed, if it is. */
export function refusalOf(
  { unreadable, cancelled, starts }: Pick<ClaimedRun, 'unreadable' | 'cancelled' | 'starts'>,
  maxStarts: number,
): Problem | undefined {
  if (unreadable) return new Problem('secret_unreadable');
  if (cancelled) return new Problem('cancelled');
  return starts >= maxStarts ? new Problem('interrupted') : undefined;
}
