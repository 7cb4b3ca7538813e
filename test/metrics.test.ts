/** What is counted, under which labels, and the metrics of several processes told as those of one. */
import { setTimeout } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { countsOf, createMetrics, type Metrics, type MetricsSources, sumOf } from '../src/metrics.ts';
import type { StoredBacklog } from '../src/metrics/store.ts';
import { ManualClock } from './support/clock.ts';
import { startService } from './support/service.ts';
import { openStage } from './support/stage.ts';
import { until } from './support/waiting.ts';

function processWith(sources: Partial<MetricsSources> = {}): Metrics {
  return createMetrics({
    size: () => ({ held: 0, waiting: 0, inFlight: 0 }),
    storeAvailable: () => true,
    runsHeld: () => 0,
    ...sources,
  });
}

const holding = (held: number): Pick<MetricsSources, 'size'> => ({
  size: () => ({ held, waiting: 0, inFlight: 0 }),
});

const call = { runtime: 'custom', status: 200, webhook: true, async: false, durationMs: 10 } as const;
const CALLS = 'afterword_calls_total{runtime="custom",status="2xx",webhook="yes",async="no"}';

async function valuesIn(metrics: Pick<Metrics, 'text'>): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter(line => line !== '' && !line.startsWith('#'));
  return new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

/** What an event added, by series, without the buckets of histograms. */
async function addedBy(event: (metrics: Metrics) => void): Promise<Record<string, number>> {
  const metrics = processWith();
  const before = await valuesIn(metrics);
  event(metrics);
  const after = await valuesIn(metrics);
  const added = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(
    added
      .filter(([name, by]) => by !== 0 && !/_bucket|_cpu_|_memory_|_heap_|_handles/.test(name))
      .map(([name, by]) => [name.replace('afterword_', ''), Math.round(by * 1e6) / 1e6]),
  );
}

describe('an event is counted', () => {
  const timings = { queueMs: 5, totalMs: 40, firstByteMs: 30 };
  const times = {
    attempt_duration_seconds_sum: 0.04,
    attempt_duration_seconds_count: 1,
    attempt_queue_seconds_sum: 0.005,
    attempt_queue_seconds_count: 1,
    attempt_first_byte_seconds_sum: 0.03,
    attempt_first_byte_seconds_count: 1,
  };

  it.each<[what: string, event: (metrics: Metrics) => void, added: Record<string, number>]>([
    [
      'a call',
      metrics => metrics.call({ ...call, async: true }),
      {
        'calls_total{runtime="custom",status="2xx",webhook="yes",async="yes"}': 1,
        call_duration_seconds_sum: 0.01,
        call_duration_seconds_count: 1,
      },
    ],
    [
      'a call that the service ended',
      metrics => metrics.call({ ...call, runtime: 'none', status: 503, code: 'store_unavailable' }),
      {
        'calls_total{runtime="none",status="5xx",webhook="yes",async="no"}': 1,
        call_duration_seconds_sum: 0.01,
        call_duration_seconds_count: 1,
        'problems_total{code="store_unavailable"}': 1,
      },
    ],
    ['a late commit', metrics => metrics.lateCommit(), { commit_wait_exceeded_total: 1 }],
    [
      'a commit',
      metrics => metrics.commit(2),
      { commit_duration_seconds_sum: 0.002, commit_duration_seconds_count: 1 },
    ],
    ['a delivery', metrics => metrics.made(), { deliveries_made_total: 1 }],
    [
      'an answered attempt',
      metrics => metrics.attempt({ status: 503, timings }),
      { 'attempts_total{outcome="5xx"}': 1, ...times },
    ],
    [
      'an attempt with a status beyond the classes',
      metrics => metrics.attempt({ status: 799, timings }),
      { 'attempts_total{outcome="other"}': 1, ...times },
    ],
    [
      'a failed attempt',
      metrics => metrics.attempt({ error: 'dns_failed', timings: { queueMs: 5, totalMs: 40 } }),
      {
        'attempts_total{outcome="dns_failed"}': 1,
        attempt_duration_seconds_sum: 0.04,
        attempt_duration_seconds_count: 1,
        attempt_queue_seconds_sum: 0.005,
        attempt_queue_seconds_count: 1,
      },
    ],
    [
      'a delivered delivery',
      metrics => metrics.settled({ state: 'delivered' }),
      { 'deliveries_settled_total{state="delivered",reason="none"}': 1 },
    ],
    [
      'a failed delivery',
      metrics => metrics.settled({ state: 'failed', reason: 'blocked' }),
      { 'deliveries_settled_total{state="failed",reason="blocked"}': 1 },
    ],
    [
      'a cancelled delivery',
      metrics => metrics.settled({ state: 'cancelled' }),
      { 'deliveries_settled_total{state="cancelled",reason="none"}': 1 },
    ],
    [
      'a blocked target',
      metrics => metrics.blocked('connect', 'own_listener'),
      { 'targets_blocked_total{at="connect",reason="own_listener"}': 1 },
    ],
    [
      'an operation that the store refused',
      metrics => metrics.storeFailed('insert_run'),
      { 'store_errors_total{operation="insert_run"}': 1 },
    ],
    [
      'a start of a run',
      metrics => metrics.runBegun(1_500),
      { run_starts_total: 1, run_wait_seconds_sum: 1.5, run_wait_seconds_count: 1 },
    ],
    [
      'the end of a run',
      metrics => metrics.runEnded({ state: 'failed' }),
      { 'runs_total{state="failed"}': 1 },
    ],
  ])('%s', async (_, event, added) => expect(await addedBy(event)).toEqual(added));

  it('once, however often it is read', async () => {
    const metrics = processWith();
    metrics.call(call);
    await metrics.text();
    await metrics.snapshot();
    metrics.call(call);
    expect((await valuesIn(metrics)).get(CALLS)).toBe(2);
  });
});

describe('labels', () => {
  /** Each value of each label of each metric, where it is not a bound. */
  async function labelsIn(metrics: Metrics): Promise<Set<string>> {
    const found = (await metrics.snapshot()).flatMap(({ name, values }) =>
      values.flatMap(({ labels }) =>
        Object.entries(labels).map(([label, value]) => `${name} ${label} ${value}`),
      ),
    );
    return new Set(found.filter(each => !each.includes(' le ')));
  }

  it('are closed sets, whatever comes in', async () => {
    const known = await labelsIn(processWith());
    const text = fc.oneof(fc.string(), fc.webUrl(), fc.uuid());
    const status = fc.integer({ min: -1, max: 2_000 });
    await fc.assert(
      fc.asyncProperty(text, text, status, fc.boolean(), async (one, other, code, yes) => {
        const metrics = processWith();
        metrics.call({
          ...call,
          runtime: one as 'none',
          status: code,
          code: other,
          webhook: yes,
          async: yes,
        });
        metrics.attempt({ error: one, timings: { queueMs: 0, totalMs: 0 } });
        metrics.attempt({ status: code, timings: { queueMs: 0, totalMs: 0 } });
        metrics.settled({ state: one as 'failed', reason: other as 'blocked' });
        metrics.blocked(one as 'intake', other as 'unparsable');
        metrics.storeFailed(one as 'insert_run');
        metrics.runEnded({ state: one as 'failed' });
        expect([...(await labelsIn(metrics))].filter(each => !known.has(each))).toEqual([]);
      }),
      { numRuns: 50 },
    );
  }, 60_000);

  it('are told before anything happened, so that the first event is an increase', async () => {
    const values = await valuesIn(processWith());
    for (const series of [
      CALLS,
      'afterword_deliveries_settled_total{state="failed",reason="exhausted"}',
      'afterword_attempts_total{outcome="blocked_target"}',
      'afterword_targets_blocked_total{at="intake",reason="not_global"}',
    ]) {
      expect([series, values.get(series)]).toEqual([series, 0]);
    }
    expect([...values.keys()].filter(key => /delivered",reason="(?!none)/.test(key))).toEqual([]);
  });
});

describe('what is pending in the store', () => {
  const PENDING = 'afterword_deliveries_pending';
  const OLDEST = 'afterword_oldest_pending_delivery_seconds';
  const RUNS = 'afterword_runs_unfinished';
  const OLDEST_RUN = 'afterword_oldest_queued_run_seconds';
  const EMPTY: StoredBacklog = { deliveries: 0, oldestAt: undefined, runs: 0, oldestQueuedAt: undefined };

  it('is read at most every 10 s, while the age goes on', async () => {
    const clock = new ManualClock();
    const made = clock.now() - 3_000;
    const backlog = vi.fn(
      async (): Promise<StoredBacklog> => ({
        deliveries: 7,
        oldestAt: made,
        runs: 2,
        oldestQueuedAt: made + 500,
      }),
    );
    const metrics = processWith({ backlog, clock });
    const first = await valuesIn(metrics);
    expect([PENDING, OLDEST, RUNS, OLDEST_RUN].map(name => first.get(name))).toEqual([7, 3, 2, 2.5]);
    clock.advance(9_999);
    const second = await valuesIn(metrics);
    expect([second.get(OLDEST), second.get(OLDEST_RUN)]).toEqual([12.999, 12.499]);
    expect(backlog).toHaveBeenCalledTimes(1);
    backlog.mockResolvedValue(EMPTY);
    clock.advance(1);
    const later = await valuesIn(metrics);
    expect([PENDING, OLDEST, RUNS, OLDEST_RUN].map(name => later.get(name))).toEqual([0, 0, 0, 0]);
    expect(backlog).toHaveBeenCalledTimes(2);
    expect(clock.waiting).toBe(0);
  });

  it('holds nothing up while the store does not answer', async () => {
    const clock = new ManualClock();
    const answer = Promise.withResolvers<StoredBacklog>();
    const metrics = processWith({ backlog: () => answer.promise, clock });
    const first = valuesIn(metrics);
    await until(() => clock.waiting > 0);
    clock.advance(500);
    expect((await first).has(PENDING)).toBe(false);
    answer.resolve({ ...EMPTY, deliveries: 1 });
    expect((await valuesIn(metrics)).get(PENDING)).toBe(1);
  });

  it('stays what it was, and is an error, when the store refuses', async () => {
    const clock = new ManualClock();
    const backlog = vi.fn(async (): Promise<StoredBacklog> => ({ ...EMPTY, deliveries: 4 }));
    const metrics = processWith({ backlog, clock });
    await metrics.text();
    backlog.mockRejectedValue(new Error('broken'));
    clock.advance(10_000);
    await metrics.text();
    const values = await valuesIn(metrics);
    expect(values.get(PENDING)).toBe(4);
    expect(values.get('afterword_store_errors_total{operation="read_backlog"}')).toBe(1);
  });
});

describe('an outage of the store', () => {
  it('is counted and timed, but not the time before the store is there', async () => {
    const clock = new ManualClock();
    let available = false;
    const metrics = processWith({ storeAvailable: () => available, clock });
    metrics.start();
    onTestFinished(() => metrics.stop());
    const told = async (): Promise<unknown> => {
      const values = await valuesIn(metrics);
      return ['available', 'outages_total', 'unavailable_seconds_total'].map(name =>
        values.get(`afterword_store_${name}`),
      );
    };
    const pass = (ms: number): void => {
      for (let passed = 0; passed < ms; passed += 100) clock.advance(100);
    };
    pass(1_000);
    expect(await told()).toEqual([0, 0, 0]);
    available = true;
    pass(1_000);
    expect(await told()).toEqual([1, 0, 0]);
    available = false;
    pass(1_100);
    expect(await told()).toEqual([0, 1, 1]);
    available = true;
    pass(200);
    available = false;
    pass(200);
    available = true;
    pass(200);
    expect(await told()).toEqual([1, 2, 1.3]);
    metrics.stop();
    expect(clock.waiting).toBe(0);
  });
});

it('the event loop is as late as it is held up, for all who read that soon', async () => {
  const clock = new ManualClock();
  const metrics = processWith({ clock });
  metrics.start();
  onTestFinished(() => metrics.stop());
  const lag = async (quantile: string): Promise<number> =>
    (await valuesIn(metrics)).get(`afterword_event_loop_lag_seconds{quantile="${quantile}"}`)!;
  await vi.waitFor(async () => {
    // It is looked at every 10 ms, which has to happen before and after.
    await setTimeout(20);
    const end = performance.now() + 100;
    while (performance.now() < end);
    await setTimeout(20);
    expect(await lag('1')).toBeGreaterThan(0.08);
  }, 10_000);
  for (const passed of [0, 10_000, 20_000, 29_999]) {
    clock.advance(passed);
    expect(await lag('1')).toBeGreaterThan(0.08);
  }
  // A machine that is busy may hold it up again.
  await vi.waitFor(async () => {
    clock.advance(30_000);
    await lag('1');
    expect(await lag('1')).toBeLessThan(0.08);
  }, 10_000);
});

describe('the sum of several', () => {
  it('adds what is counted and held, and has a store where all have', async () => {
    const [one, other] = [
      processWith(holding(2)),
      processWith({ ...holding(3), storeAvailable: () => false }),
    ];
    one.call(call);
    one.call(call);
    other.call(call);
    other.commit(0.7);
    const values = await valuesIn(sumOf([await one.snapshot(), await other.snapshot()]));
    expect(values.get(CALLS)).toBe(3);
    expect(values.get('afterword_call_duration_seconds_count')).toBe(3);
    expect(values.get('afterword_commit_duration_seconds_bucket{le="0.001"}')).toBe(1);
    expect(values.get('afterword_deliveries_held')).toBe(5);
    expect(values.get('afterword_store_available')).toBe(0);
  });

  it('has what is pending in the store once, and the highest age', async () => {
    const clock = new ManualClock();
    const reading = (deliveries: number, age: number): Metrics => {
      const [oldestAt, oldestQueuedAt] = [clock.now() - age, clock.now() - 2 * age];
      return processWith({ clock, backlog: async () => ({ deliveries, oldestAt, runs: 1, oldestQueuedAt }) });
    };
    const snapshots = await Promise.all([reading(5, 2_000), reading(6, 1_000)].map(each => each.snapshot()));
    const values = await valuesIn(sumOf([await processWith().snapshot(), ...snapshots]));
    expect(values.get('afterword_deliveries_pending')).toBe(6);
    expect(values.get('afterword_oldest_pending_delivery_seconds')).toBe(2);
    expect(values.get('afterword_runs_unfinished')).toBe(1);
    expect(values.get('afterword_oldest_queued_run_seconds')).toBe(4);
  });

  it('of one is what that tells itself', async () => {
    const metrics = processWith(holding(1));
    metrics.call(call);
    const own = await valuesIn(metrics);
    const sum = await valuesIn(sumOf([await metrics.snapshot()]));
    expect([...sum.keys()]).toEqual([...own.keys()]);
    expect(sum.get(CALLS)).toBe(1);
  });

  it('keeps of a process that has ended what it counted, and nothing of what it held', async () => {
    const ended = processWith({ ...holding(7), storeAvailable: () => false });
    ended.call(call);
    const present = processWith(holding(1));
    present.call(call);
    const past = countsOf(await ended.snapshot());
    const values = await valuesIn(sumOf([past, await present.snapshot()]));
    expect(values.get(CALLS)).toBe(2);
    expect(values.get('afterword_deliveries_held')).toBe(1);
    expect(values.get('afterword_store_available')).toBe(1);
    expect(values.get('afterword_cpu_seconds_total')).toBeGreaterThan(0);
  });
});

it('a service counts what happens in it', async () => {
  const app = await openStage();
  onTestFinished(() => app.close());
  const service = await startService({
    apps: { app: { runtime: 'custom', url: app.url } },
    // So `localhost` may be a target, but not the address that it has besides.
    webhooks: { allowTargets: ['::1'] },
  });
  onTestFinished(() => service.stop());
  const path = `app/${app.play((_req, res) => res.end('x'))}`;
  const headers = { authorization: `Bearer ${service.token}` };
  const call = async (at: string, method = 'GET'): Promise<Response> =>
    fetch(service.base + at, { method, headers });
  const told = async (name: string): Promise<number | undefined> => {
    const text = async (): Promise<string> => (await fetch(`${service.admin}/metrics`)).text();
    return (await valuesIn({ text })).get(`afterword_${name}`);
  };
  expect(await told('deliveries_pending')).toBe(0);

  expect((await call(service.path(path, 'http://10.0.0.1/'))).status).toBe(400);
  expect((await call(service.path(path, 'http://localhost:1/'))).status).toBe(200);
  const pending = await call(service.path(path, 'http://[::1]:1/'));
  const cancel = service.path(`_deliveries/${pending.headers.get('x-request-id')}/cancel`);
  expect((await call(cancel, 'POST')).status).toBe(200);
  const run = (await (await call(service.path(`${path}?async=true`))).json()) as { run_id: string };
  await call(service.path(`_runs/${run.run_id}?wait=10s`));

  for (const [name, value] of [
    ['problems_total{code="forbidden_target"}', 1],
    ['targets_blocked_total{at="intake",reason="not_global"}', 1],
    ['targets_blocked_total{at="connect",reason="not_global"}', 1],
    ['calls_total{runtime="custom",status="2xx",webhook="no",async="yes"}', 1],
    ['deliveries_made_total', 2],
    ['deliveries_settled_total{state="failed",reason="blocked"}', 1],
    ['deliveries_settled_total{state="cancelled",reason="none"}', 1],
    ['attempts_total{outcome="blocked_target"}', 1],
    ['run_starts_total', 1],
    ['run_wait_seconds_count', 1],
    ['runs_total{state="succeeded"}', 1],
    ['store_available', 1],
  ] as const) {
    await expect.poll(async () => [name, await told(name)]).toEqual([name, value]);
  }
  expect(await told('connections')).toBeGreaterThan(0);
});
