/**
 * From the turns of all rounds to the figures that are shown: medians over the rounds, and the ratios of the deep
 * queue to the empty one within each round.
 */
import { median, table } from '../report.ts';
import { type Case, nameOf, type Turn } from './measure.ts';

/** One figure, with either queue. */
export interface Compared {
  readonly empty: number;
  readonly deep: number;
  readonly deepToEmpty: number;
}

export interface AsyncFigures extends Case {
  /** In all rounds, on both services. */
  readonly calls: number;
  readonly acceptedPerSecond: Compared;
  readonly p50Ms: Compared;
  readonly p99Ms: Compared;
  readonly carriedOutPerSecond: Compared;
  readonly cpuMicros: Compared;
}

export function asyncFigures(turns: readonly Turn[]): AsyncFigures[] {
  return [...Map.groupBy(turns, nameOf).values()].map(own => {
    const empty = own.filter(turn => !turn.deep);
    const deep = own.filter(turn => turn.deep);
    const compare = (of: (turn: Turn) => number): Compared => ({
      empty: median(empty.map(of)),
      deep: median(deep.map(of)),
      deepToEmpty: median(deep.map((turn, round) => of(turn) / of(empty[round]!))),
    });
    const { store, concurrency } = own[0]!;
    return {
      store,
      concurrency,
      calls: own.reduce((total, turn) => total + turn.calls, 0),
      acceptedPerSecond: compare(({ calls, wallMs }) => (calls / wallMs) * 1000),
      p50Ms: compare(({ p50Ms }) => p50Ms),
      p99Ms: compare(({ p99Ms }) => p99Ms),
      carriedOutPerSecond: compare(({ calls, totalMs }) => (calls / totalMs) * 1000),
      cpuMicros: compare(({ cpuMicros }) => cpuMicros),
    };
  });
}

/** What is shown of each case, and with how many decimals. */
const FIGURES = [
  ['accepted /s', 'acceptedPerSecond', 0],
  ['202 p50 ms', 'p50Ms', 2],
  ['202 p99 ms', 'p99Ms', 2],
  ['carried out /s', 'carriedOutPerSecond', 0],
  ['CPU µs', 'cpuMicros', 0],
] as const;

export function asText(figures: readonly AsyncFigures[]): string {
  const rows = figures.flatMap(each =>
    FIGURES.map(([title, name, decimals]) => [
      `${nameOf(each)}: ${title}`,
      each[name].empty.toFixed(decimals),
      each[name].deep.toFixed(decimals),
      each[name].deepToEmpty.toFixed(2),
    ]),
  );
  return `${table(['asynchronous calls', 'empty queue', 'deep queue', 'deep to empty'], rows)}\n`;
}
