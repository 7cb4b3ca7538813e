/**
 * From the turns of all rounds to the figures that are shown: medians over the rounds, and ratios within each
 * round, whose median says more than the ratio of medians on a machine that has other things to do.
 */
import type { Latency } from './latency.ts';
import type { Turn } from './measure.ts';
import { PEER, SUBJECTS, type Subject, WITH_WEBHOOK, WITHOUT_WEBHOOK } from './stand.ts';
import type { Method } from './workload.ts';

export interface CallFigures {
  readonly subject: Subject;
  readonly method: Method;
  readonly calls: number;
  readonly deliveries: number;
  readonly cpuMicros: number;
  /** Of its CPU to the peer's in the same round. */
  readonly ratioToPeer: number;
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface DeliveryFigures {
  readonly size: number;
  readonly deliveries: number;
  readonly deliveriesPerSecond: number;
  readonly cpuMicros: number;
}

export interface CommitFigures {
  readonly calls: number;
  readonly without: Latency;
  readonly with: Latency;
  /** Differences within each round. */
  readonly added: Latency;
  /** What the disk alone takes. */
  readonly disk: Latency;
}

export interface Figures {
  readonly calls?: readonly CallFigures[];
  readonly deliveries?: readonly DeliveryFigures[];
  readonly commit?: CommitFigures;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function callFigures(turns: readonly Turn[]): CallFigures[] {
  const methods = [...new Set(turns.map(({ method }) => method))];
  return methods.flatMap(method => {
    const of = (subject: Subject): Turn[] =>
      turns.filter(turn => turn.subject === subject && turn.method === method);
    const peer = of(PEER);
    return SUBJECTS.map(subject => {
      const own = of(subject);
      return {
        subject,
        method,
        calls: sum(own, turn => turn.calls),
        deliveries: sum(own, turn => turn.deliveries),
        cpuMicros: median(own.map(turn => turn.cpuMicros)),
        ratioToPeer: median(own.map((turn, round) => turn.cpuMicros / peer[round]!.cpuMicros)),
        callsPerSecond: median(own.map(turn => (turn.calls / turn.wallMs) * 1000)),
        ...latency(own),
      };
    });
  });
}

export function deliveryFigures(turns: readonly Turn[]): DeliveryFigures[] {
  const sizes = [...new Set(turns.map(({ size }) => size))].sort((a, b) => a - b);
  return sizes.map(size => {
    const own = turns.filter(turn => turn.size === size);
    return {
      size,
      deliveries: sum(own, turn => turn.deliveries),
      deliveriesPerSecond: median(own.map(turn => (turn.deliveries / turn.totalMs) * 1000)),
      cpuMicros: median(own.map(turn => turn.cpuMicros)),
    };
  });
}

export function commitFigures(turns: readonly Turn[], disk: Latency): CommitFigures {
  const without = turns.filter(turn => turn.subject === WITHOUT_WEBHOOK);
  const webhook = turns.filter(turn => turn.subject === WITH_WEBHOOK);
  return {
    calls: sum(webhook, turn => turn.calls),
    without: latency(without),
    with: latency(webhook),
    added: {
      p50Ms: median(webhook.map((turn, round) => turn.p50Ms - without[round]!.p50Ms)),
      p99Ms: median(webhook.map((turn, round) => turn.p99Ms - without[round]!.p99Ms)),
    },
    disk,
  };
}

function latency(turns: readonly Turn[]): Latency {
  return { p50Ms: median(turns.map(turn => turn.p50Ms)), p99Ms: median(turns.map(turn => turn.p99Ms)) };
}

function sum(turns: readonly Turn[], of: (turn: Turn) => number): number {
  return turns.reduce((total, turn) => total + of(turn), 0);
}

export function asText({ calls, deliveries, commit }: Figures): string {
  const parts: string[] = [];
  if (calls !== undefined) parts.push(callTable(calls));
  if (deliveries !== undefined) parts.push(deliveryTable(deliveries));
  if (commit !== undefined) parts.push(commitTable(commit));
  return `${parts.join('\n\n')}\n`;
}

function callTable(figures: readonly CallFigures[]): string {
  const rows = figures.map(each => [
    `${each.method} ${each.subject}`,
    each.cpuMicros.toFixed(1),
    each.ratioToPeer.toFixed(2),
    each.callsPerSecond.toFixed(0),
    each.p50Ms.toFixed(2),
    each.p99Ms.toFixed(2),
  ]);
  return table(['a call, 1 KiB answer', 'CPU µs', `to ${PEER}`, 'calls/s', 'p50 ms', 'p99 ms'], rows);
}

function deliveryTable(figures: readonly DeliveryFigures[]): string {
  const rows = figures.map(each => [
    `${each.size / 1024} KiB`,
    each.deliveriesPerSecond.toFixed(0),
    each.cpuMicros.toFixed(1),
  ]);
  return table(['calls until all are delivered', 'deliveries/s', 'CPU µs'], rows);
}

function commitTable({ without, with: webhook, added, disk }: CommitFigures): string {
  const row = (name: string, { p50Ms, p99Ms }: Latency): string[] => [
    name,
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
  ];
  return table(
    ['a single call, to the end of its answer', 'p50 ms', 'p99 ms'],
    [
      row(WITHOUT_WEBHOOK, without),
      row(WITH_WEBHOOK, webhook),
      row('added', added),
      row('fsync of the disk', disk),
    ],
  );
}

/** The first column to the left, figures to the right. */
export function table(head: readonly string[], rows: readonly string[][]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column]!.length)));
  return [head, ...rows]
    .map(row =>
      row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '),
    )
    .join('\n');
}
