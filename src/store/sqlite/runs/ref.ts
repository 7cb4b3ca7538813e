/**
 * A run's reference has the claim in it by which its owner got it. So nothing happens through one that is old,
 * even where the same owner has the run again.
 */
import type { RunRef } from '../../runs.ts';
import type { Held } from './protocol.ts';

export interface Named extends Held {
  readonly runId: string;
}

export function formatRef({ runId, id, claim }: Named): RunRef {
  return `${runId}:${id}:${claim}`;
}

export function parseRef(ref: RunRef): Named {
  const [runId = '', id, claim] = String(ref).split(':');
  return { runId, id: Number(id), claim: Number(claim) };
}
