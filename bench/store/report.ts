/**
 * From the turns of all rounds to the figures that are shown: medians over the rounds, and the ratio of the
 * filled database to the empty one within each round.
 */
import type { Latency } from '../latency.ts';
import { median, table } from '../report.ts';
import { type Case, nameOf, perSecond, type Turn } from './measure.ts';

export interface StoreFigures extends Case {
  /** In all rounds, on both databases. */
  readonly deliveries: number;
  readonly emptyPerSecond: number;
  readonly filledPerSecond: number;
  readonly filledToEmpty: number;
  /** On the filled database, as all that follow. */
  readonly cpuMicros: number;
  readonly serverCpuMicros?: number;
  readonly firstWrite: Latency;
}

export function storeFigures(turns: readonly Turn[]): StoreFigures[] {
  return [...Map.groupBy(turns, nameOf).values()].map(own => {
    const empty = own.filter(turn => !turn.filled);
    const filled = own.filter(turn => turn.filled);
    const server = filled.flatMap(turn => turn.serverCpuMicros ?? []);
    const { store, life, size, dispatchers } = own[0]!;
    return {
      store,
      life,
      size,
      dispatchers,
      deliveries: own.reduce((total, turn) => total + turn.deliveries, 0),
      emptyPerSecond: median(empty.map(perSecond)),
      filledPerSecond: median(filled.map(perSecond)),
      filledToEmpty: median(filled.map((turn, round) => perSecond(turn) / perSecond(empty[round]!))),
      cpuMicros: median(filled.map(turn => turn.cpuMicros)),
      ...(server.length > 0 && { serverCpuMicros: median(server) }),
      firstWrite: {
        p50Ms: median(filled.map(turn => turn.firstWrite.p50Ms)),
        p99Ms: median(filled.map(turn => turn.firstWrite.p99Ms)),
      },
    };
  });
}

export function asText(figures: readonly StoreFigures[]): string {
  const rows = figures.map(each => [
    nameOf(each),
    each.emptyPerSecond.toFixed(0),
    each.filledPerSecond.toFixed(0),
    each.filledToEmpty.toFixed(2),
    each.cpuMicros.toFixed(1),
    each.serverCpuMicros?.toFixed(1) ?? '',
    each.firstWrite.p50Ms.toFixed(1),
    each.firstWrite.p99Ms.toFixed(1),
  ]);
  const head = ['deliveries through their whole life', 'empty /s', 'filled /s', 'filled to empty'];
  return `${table([...head, 'CPU µs', 'server µs', 'first write p50 ms', 'p99 ms'], rows)}\n`;
}
