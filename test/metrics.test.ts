/** The metrics of several processes, told as those of one. */
import { describe, expect, it } from 'vitest';
import { countsOf, createMetrics, type Metrics, sumOf } from '../src/metrics.ts';

function processWith(held: number, available: boolean): Metrics {
  return createMetrics({
    size: () => ({ held, waiting: 0, inFlight: 0 }),
    storeAvailable: () => available,
    runsHeld: () => 0,
  });
}

const call = { runtime: 'custom', status: 200, webhook: true, durationMs: 10 };
const CALLS = 'afterword_calls_total{runtime="custom",status="2xx",webhook="yes"}';

async function valuesIn(metrics: Pick<Metrics, 'text'>): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter(line => line !== '' && !line.startsWith('#'));
  return new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

describe('the sum of several', () => {
  it('adds what is counted and held, and has a store where all have', async () => {
    const [one, other] = [processWith(2, true), processWith(3, false)];
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

  it('of one is what that tells itself', async () => {
    const metrics = processWith(1, true);
    metrics.call(call);
    const own = await valuesIn(metrics);
    const sum = await valuesIn(sumOf([await metrics.snapshot()]));
    expect([...sum.keys()]).toEqual([...own.keys()]);
    expect(sum.get(CALLS)).toBe(1);
  });

  it('keeps of a process that has ended what it counted, and nothing of what it held', async () => {
    const ended = processWith(7, false);
    ended.call(call);
    const present = processWith(1, true);
    present.call(call);
    const past = countsOf(await ended.snapshot());
    const values = await valuesIn(sumOf([past, await present.snapshot()]));
    expect(values.get(CALLS)).toBe(2);
    expect(values.get('afterword_deliveries_held')).toBe(1);
    expect(values.get('afterword_store_available')).toBe(1);
  });
});
