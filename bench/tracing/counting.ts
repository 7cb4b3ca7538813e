/**
 * What counting for the metrics takes of a call, by itself: the service always counts, so there is none beside
 * it that does not and could be compared. Who is measured does nothing else.
 */
import { createMetrics, type Metrics } from '../../src/metrics.ts';
import { onAsk } from '../probe.ts';

export interface CountingResult {
  /** CPU of what is counted of a call without a webhook. */
  readonly callMicros: number;
  /** Of one with a webhook, and its delivery. */
  readonly webhookMicros: number;
}

const metrics = createMetrics({
  size: () => ({ held: 0, waiting: 0, inFlight: 0 }),
  storeAvailable: () => true,
  runsHeld: () => 0,
});
const CALL = { runtime: 'custom', status: 200, async: false } as const;

onAsk(
  'count',
  (times: number): CountingResult => ({
    callMicros: cpuOf(times, countCall),
    webhookMicros: cpuOf(times, countDelivered),
  }),
);

function cpuOf(times: number, count: (to: Metrics, ms: number) => void): number {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) count(metrics, i % 100);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

function countCall(to: Metrics, ms: number): void {
  to.call({ ...CALL, webhook: false, durationMs: ms });
}

function countDelivered(to: Metrics, ms: number): void {
  to.call({ ...CALL, webhook: true, durationMs: ms });
  to.commit(ms);
  to.made();
  to.attempt({ status: 200, timings: { queueMs: ms, firstByteMs: ms, totalMs: ms } });
  to.settled({ state: 'delivered' });
}
