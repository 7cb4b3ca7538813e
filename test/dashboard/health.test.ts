/** What a node tells of itself is judged: by the names that the service really uses, and by the bounds of the alerts. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { readinessRow, rowsOf } from '../../dashboard/src/health.ts';
import { parseMetrics } from '../../dashboard/src/prometheus.ts';
import { startService } from '../support/service.ts';

describe('readiness', () => {
  it.each([
    ['ready', false],
    ['starting', true],
    ['stopping', true],
    ['store_unavailable', true],
    ['<html>502 Bad Gateway</html>', true],
  ])('%s', (told, look) => expect(readinessRow(told)).toMatchObject({ value: told, look }));

  it('of a page in between is told in short', () =>
    expect(readinessRow('x'.repeat(9_000)).value).toHaveLength(40));
});

describe('a line is judged', () => {
  it.each<[name: string, metrics: string[], value: string, look: boolean]>([
    ['Store', ['store_available 1'], 'available', false],
    [
      'Store',
      ['store_available 1', 'store_outages_total 3', 'store_unavailable_seconds_total 61.5'],
      'available · away 3 times, 1 min 1 s in all',
      false,
    ],
    [
      'Store',
      ['store_available 1', 'store_outages_total 4', 'store_unavailable_seconds_total 2'],
      'available · away 4 times, 2 s in all',
      true,
    ],
    [
      'Store',
      ['store_available 0', 'store_outages_total 1', 'store_unavailable_seconds_total 2'],
      'unavailable · away once, 2 s in all',
      true,
    ],
    ['Store errors', ['store_errors_total{operation="a"} 0'], '0', false],
    [
      'Store errors',
      ['store_errors_total{operation="a"} 1', 'store_errors_total{operation="b"} 2'],
      '3',
      true,
    ],
    ['Commit time, p50 / p99', ['commit_duration_seconds_count 0'], 'none yet', false],
    ['Commit time, p50 / p99', committed(0.01), '5 ms / 9.9 ms', false],
    ['Commit time, p50 / p99', committed(0.5), '250 ms / 495 ms', true],
    ['Waits beyond commitWait', ['commit_wait_exceeded_total 0'], '0 of 0 deliveries', false],
    [
      'Waits beyond commitWait',
      ['commit_wait_exceeded_total 1', 'deliveries_made_total 1000'],
      '1 of 1,000 deliveries',
      false,
    ],
    [
      'Waits beyond commitWait',
      ['commit_wait_exceeded_total 2', 'deliveries_made_total 1000'],
      '2 of 1,000 deliveries',
      true,
    ],
    ['Pending deliveries', ['deliveries_pending 10000'], '10,000', false],
    ['Pending deliveries', ['deliveries_pending 10001'], '10,001', true],
    ['Oldest pending delivery', ['oldest_pending_delivery_seconds 0'], 'none', false],
    ['Oldest pending delivery', ['oldest_pending_delivery_seconds 300'], '5 min', false],
    ['Oldest pending delivery', ['oldest_pending_delivery_seconds 301'], '5 min 1 s', true],
    [
      'Deliveries of this node',
      ['deliveries_waiting 999', 'attempts_in_flight 8', 'deliveries_held 1500'],
      '8 in flight · 999 waiting · 1,500 held',
      false,
    ],
    ['Deliveries of this node', ['deliveries_waiting 1000'], '0 in flight · 1,000 waiting · 0 held', true],
    ['Unfinished runs', ['runs_unfinished 7', 'runs_in_progress 2'], '7 · 2 in progress here', false],
    ['Oldest queued run', ['oldest_queued_run_seconds 900'], '15 min', false],
    ['Oldest queued run', ['oldest_queued_run_seconds 901'], '15 min 1 s', true],
    ['Blocked targets', blocked(5, 0), '5 at intake · 0 at connect', false],
    ['Blocked targets', blocked(0, 1), '0 at intake · 1 at connect', true],
    ['Event loop lag, p50 / p99', late(0.001, 0.1), '1 ms / 100 ms', false],
    ['Event loop lag, p50 / p99', late(0.001, 0.12), '1 ms / 120 ms', true],
  ])('%s, of %j', (name, metrics, value, look) => {
    const text = metrics.map(metric => `afterword_${metric}`).join('\n');
    expect(rowsOf(parseMetrics(text))).toEqual([{ name, value, look, words: expect.any(String) }]);
  });

  it('says what to do by what the node has in its hands', () => {
    const words = (inFlight: number): string | undefined =>
      rowsOf(parseMetrics(`afterword_deliveries_waiting 5000\nafterword_attempts_in_flight ${inFlight}`))[0]
        ?.words;
    expect(words(0)).toContain('nothing is sent');
    expect(words(256)).toContain('webhooks.concurrency');
  });
});

function committed(bound: number): string[] {
  const name = 'commit_duration_seconds';
  return [`${name}_bucket{le="${bound}"} 9`, `${name}_bucket{le="+Inf"} 9`, `${name}_count 9`];
}

function blocked(intake: number, connect: number): string[] {
  return [
    `targets_blocked_total{at="intake",reason="not_global"} ${intake}`,
    `targets_blocked_total{at="connect",reason="not_global"} ${connect}`,
  ];
}

function late(p50: number, p99: number): string[] {
  return [
    `event_loop_lag_seconds{quantile="0.5"} ${p50}`,
    `event_loop_lag_seconds{quantile="0.99"} ${p99}`,
    'event_loop_lag_seconds{quantile="1"} 9',
  ];
}

it('a service that has just started tells all of it, and is well', async () => {
  const service = await startService({ apps: {} });
  onTestFinished(() => service.stop());
  const text = await (await fetch(`${service.admin}/metrics`)).text();
  const rows = rowsOf(parseMetrics(text));
  const lag = 'Event loop lag, p50 / p99'; // of a machine that is busy with tests
  expect(rows.filter(({ look, name }) => look && name !== lag)).toEqual([]);
  expect(rows.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'Store',
      'Store errors',
      'Commit time, p50 / p99',
      'Waits beyond commitWait',
      'Pending deliveries',
      'Oldest pending delivery',
      'Deliveries of this node',
      'Unfinished runs',
      'Blocked targets',
      lag,
    ]),
  );
  expect(readinessRow((await (await fetch(`${service.admin}/readyz`)).text()).trim()).look).toBe(false);
});
