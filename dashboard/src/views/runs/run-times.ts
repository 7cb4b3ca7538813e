/**
 * How long a run has waited for its start and how long it has run, counting on for as long as it does.
 */
import type { RunFacts } from '../../api/shapes.ts';

export interface RunTimes {
  readonly waitedMs: number;
  /** Undefined where it has not begun. */
  readonly ranMs: number | undefined;
}

export function runTimes(run: Omit<RunFacts, 'starts'>, now: number): RunTimes {
  const at = (time: string | undefined): number | undefined =>
    time === undefined ? undefined : Date.parse(time);
  const created = Date.parse(run.created_at);
  const ended = at(run.ended_at) ?? now;
  // One whose service ended waits again, and still has the time of the start that came to nothing.
  const started = run.state === 'queued' ? undefined : at(run.started_at);
  const between = (from: number, to: number): number => Math.max(0, to - from);
  return {
    waitedMs: between(created, started ?? ended),
    ranMs: started === undefined ? undefined : between(started, ended),
  };
}
