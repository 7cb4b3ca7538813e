/** How long a run has waited and run, as the list of runs counts it. */
import { expect, it } from 'vitest';
import type { RunFacts } from '../../dashboard/src/api/shapes.ts';
import { runTimes } from '../../dashboard/src/views/runs/run-times.ts';

const START = Date.parse('2027-01-15T08:00:00Z');
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString();

it.each<[Pick<RunFacts, 'state' | 'started_at' | 'ended_at'>, number, number | undefined]>([
  [{ state: 'queued' }, 60, undefined],
  [{ state: 'queued', started_at: at(10) }, 60, undefined],
  [{ state: 'running', started_at: at(10) }, 10, 50],
  [{ state: 'succeeded', started_at: at(10), ended_at: at(14) }, 10, 4],
  [{ state: 'cancelled', ended_at: at(5) }, 5, undefined],
  [{ state: 'running', started_at: at(70) }, 70, 0], // clocks that differ
])('%j', (facts, waited, ran) => {
  expect(runTimes({ created_at: at(0), ...facts }, START + 60_000)).toEqual({
    waitedMs: waited * 1000,
    ranMs: ran === undefined ? undefined : ran * 1000,
  });
});
