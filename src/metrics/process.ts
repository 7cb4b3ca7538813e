/** What the process itself uses, and how late its event loop is. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Instruments } from './instruments.ts';

export interface ProcessWatch {
  start(): void;
  stop(): void;
}

/** How often the event loop is looked at. What is measured is the time between two looks, this one included. */
const LOOK_MS = 10;

export function watchProcess({ gauge, gauges, total }: Instruments): ProcessWatch {
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS });
  const lag = (ns: number): number => Math.max(0, ns / 1e9 - LOOK_MS / 1e3);

  gauges({
    name: 'event_loop_lag_seconds',
    help: 'How late the event loop was since the last reading, by quantile',
    label: 'quantile',
    aggregator: 'max',
    read() {
      const { count } = delay;
      const of = (quantile: number): number => (count === 0 ? 0 : lag(delay.percentile(quantile * 100)));
      const read = { '0.5': of(0.5), '0.99': of(0.99), '1': of(1) };
      delay.reset();
      return read;
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
