/**
 * From the rounds to the figures that are shown: the ratio of on to off within each round, its median and its
 * spread; and the ratio to a service that would not even count, by what counting takes.
 */
import { median, table } from '../report.ts';
import type { CountingResult } from './counting.ts';
import { type Case, CASE_NAMES, CASES, type Round } from './measure.ts';

export interface TracingFigures {
  readonly of: Case;
  readonly rounds: number;
  readonly calls: number;
  readonly spans: number;
  readonly offMicros: number;
  readonly onMicros: number;
  readonly onToOff: number;
  /** Half of the rounds lie between the two. */
  readonly quartiles: readonly [number, number];
  readonly countingMicros: number;
  readonly onToNotCounting: number;
}

export function tracingFigures(rounds: readonly Round[], counting: CountingResult): TracingFigures[] {
  return CASE_NAMES.map(of => {
    const own = rounds.filter(round => round.of === of);
    const countingMicros = CASES[of].webhook ? counting.webhookMicros : counting.callMicros;
    const ratios = own.map(({ onMicros, offMicros }) => onMicros / offMicros);
    return {
      of,
      rounds: own.length,
      calls: own.reduce((sum, { calls }) => sum + calls, 0),
      spans: own.reduce((sum, { spans }) => sum + spans, 0),
      offMicros: median(own.map(({ offMicros }) => offMicros)),
      onMicros: median(own.map(({ onMicros }) => onMicros)),
      onToOff: median(ratios),
      quartiles: quartilesOf(ratios),
      countingMicros,
      onToNotCounting: median(own.map(({ onMicros, offMicros }) => onMicros / (offMicros - countingMicros))),
    };
  });
}

function quartilesOf(values: readonly number[]): [number, number] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round((sorted.length - 1) * share)]!;
  return [at(0.25), at(0.75)];
}

export function asText(figures: readonly TracingFigures[]): string {
  const rows = figures.map(each => [
    each.of,
    each.offMicros.toFixed(1),
    each.onMicros.toFixed(1),
    each.onToOff.toFixed(3),
    each.quartiles.map(ratio => ratio.toFixed(3)).join(' to '),
    each.countingMicros.toFixed(2),
    each.onToNotCounting.toFixed(3),
  ]);
  const head = ['CPU µs of a call', 'off', 'on', 'on to off', 'half of the rounds', 'counting', 'to none'];
  return `${table(head, rows)}\n`;
}
