/** What the process itself uses, and how late its event loop is. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '../clock.ts';
import type { Instruments } from './instruments.ts';

export interface ProcessWatch {
  start(): void;
  stop(): void;
}

/** How often the event loop is looked at. What is measured is the time between two looks, this one included. */
const LOOK_MS = 10;
/** What is told of the event loop goes back at least so far, however many read it, and however often. */
const WINDOW_MS = 30_000;
const QUANTILES = ['0.5', '0.99', '1'] as const;

export function watchProcess(
  { gauge, gauges, total }: Instruments,
  clock: Pick<Clock, 'elapsed'>,
): ProcessWatch {
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS });
  const lag = (quantile: string): number =>
    delay.count === 0 ? 0 : Math.max(0, delay.percentile(Number(quantile) * 100) / 1e9 - LOOK_MS / 1e3);
  /** The window before the one that is measured. */
  let before = QUANTILES.map(() => 0);
  let since = clock.elapsed();

  gauges({
    name: 'event_loop_lag_seconds',
    help: 'How late the event loop was in the last half minute or more, by quantile',
    label: 'quantile',
    aggregator: 'max',
    read() {
      const now = QUANTILES.map(lag);
      const told = QUANTILES.map((quantile, i) => [quantile, Math.max(before[i]!, now[i]!)] as const);
      if (clock.elapsed() - since >= WINDOW_MS) {
        before = now;
        since = clock.elapsed();
        delay.reset();
      }
      return Object.fromEntries(told);
    },
  });
  gauge({
    name: 'resident_memory_bytes',
    help: 'Resident memory of the process',
    read: () => process.memoryUsage.rss(),
  });
  gauge({
    name: 'heap_used_bytes',
    help: 'JavaScript objects of the process',
    read: () => process.memoryUsage().heapUsed,
  });
  gauge({
    name: 'active_handles',
    help: 'Sockets, timers and other things that the process has open',
    read: () => process.getActiveResourcesInfo().length,
  });
  gauge({
    name: 'start_time_seconds',
    help: 'When the process started, in seconds since the epoch',
    aggregator: 'min',
    read: () => performance.timeOrigin / 1e3,
  });
  total({
    name: 'cpu_seconds_total',
    help: 'CPU time of the process',
    read() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
  return { start: () => void delay.enable(), stop: () => void delay.disable() };
}
