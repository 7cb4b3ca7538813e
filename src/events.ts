/**
 * What happens to calls and deliveries, told to those who count: the metrics, of this process, and the numbers
 * that the store keeps.
 */
import type { DispatcherEvents, ReportedDelivery } from './delivery/report.ts';
import type { CallEvents } from './gateway/call-report.ts';
import type { Metrics } from './metrics.ts';
import type { Statistics } from './stats.ts';

export interface Counting {
  readonly metrics: Metrics;
  readonly statistics: Statistics;
}

export function callEvents({ metrics, statistics }: Counting): CallEvents & { lateCommit(): void } {
  return {
    call(call) {
      metrics.call(call);
      statistics.call(call);
    },
    lateCommit: () => metrics.lateCommit(),
  };
}

export function dispatcherEvents({ metrics, statistics }: Counting): DispatcherEvents {
  return {
    made(delivery) {
      metrics.made();
      statistics.made(delivery);
    },
    storeFailed: operation => metrics.storeFailed(operation),
    attempt(result, delivery) {
      metrics.attempt(result);
      const { status = 0, number, timings } = result;
      const { projectId, round } = delivery;
      statistics.attempt({
        projectId,
        host: hostIn(delivery),
        first: round === 1 && number === 1,
        delivered: status >= 200 && status < 300,
        totalMs: timings.totalMs,
      });
    },
    settled(next, { projectId }) {
      metrics.settled(next);
      statistics.settled({ projectId, state: next.state });
    },
  };
}

/** As filters name it: what stands in the origin behind its scheme. */
function hostIn({ origin }: ReportedDelivery): string {
  return origin.slice(origin.indexOf('//') + 2);
}
