/** Metrics are read as they are written: by hand, by any label, and by the service itself. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseMetrics, quantileOf, sumOf } from '../../dashboard/src/prometheus.ts';
import { createMetrics } from '../../src/metrics.ts';

describe('a line', () => {
  it.each<[line: string, labels: Record<string, string>, value: number]>([
    ['up 1', {}, 1],
    ['up{} 1', {}, 1],
    ['  up\t1\t1395066363000 ', {}, 1],
    ['up{a="b",c="d"} 0.25', { a: 'b', c: 'd' }, 0.25],
    ['up{a="b", c="d",} 2', { a: 'b', c: 'd' }, 2],
    ['up{a="} 7"} 1e3', { a: '} 7' }, 1000],
    ['up{a="\\"\\\\n\\n"} -4', { a: '"\\n\n' }, -4],
    ['up{le="+Inf"} +Inf', { le: '+Inf' }, Infinity],
    ['up -Inf', {}, -Infinity],
    ['up NaN', {}, Number.NaN],
    ['up 1\r', {}, 1],
  ])('%j is a sample', (line, labels, value) => {
    expect(parseMetrics(line)).toEqual(new Map([['up', [{ labels, value }]]]));
  });

  it.each(['', '# HELP up Whether it is', '# TYPE up gauge', 'up', '1up 1', '<html>', '{"up": 1}'])(
    '%j is none',
    line => expect(parseMetrics(line).size).toBe(0),
  );
});

it('labels come back as they were, whatever is in them', () => {
  const name = fc.constantFrom('le', 'quantile', 'at', '_a', 'B2');
  const hard = ['\\', '"', '\n', '\r', '\u2028', 'n', ',', '=', '{', '}', ' ', '1', '#', 'é', '😀'];
  const text = fc.string({ unit: fc.constantFrom(...hard) });
  const written = fc.record({ labels: fc.dictionary(name, text), value: fc.double() });
  const escaped = (text: string): string =>
    text.replaceAll(/[\\"\n]/g, found => (found === '\n' ? '\\n' : `\\${found}`));
  fc.assert(
    fc.property(written, ({ labels, value }) => {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
      const number = Number.isFinite(value) || Number.isNaN(value) ? value : value > 0 ? '+Inf' : '-Inf';
      const [sample] = parseMetrics(`m{${pairs.join(',')}} ${number}`).get('m') ?? [];
      expect(sample?.labels).toEqual({ ...labels });
      expect(sample?.value === value || Number.isNaN(value)).toBe(true);
    }),
  );
});

describe('a sum', () => {
  const metrics = parseMetrics('n{at="a",why="x"} 1\nn{at="a",why="y"} 2\nn{at="b",why="x"} 4\n');

  it.each<[labels: Record<string, string>, sum: number | undefined]>([
    [{}, 7],
    [{ at: 'a' }, 3],
    [{ why: 'x' }, 5],
    [{ at: 'b', why: 'x' }, 4],
    [{ at: 'c' }, undefined],
    [{ other: 'x' }, undefined],
  ])('of those with %j is %j', (labels, sum) => expect(sumOf(metrics, 'n', labels)).toBe(sum));

  it('of what is not there is none', () => expect(sumOf(metrics, 'm')).toBeUndefined());
});

describe('a quantile', () => {
  const histogram = (counts: Readonly<Record<string, number>>) =>
    parseMetrics(
      Object.entries(counts)
        .map(([le, count]) => `h_bucket{le="${le}"} ${count}`)
        .join('\n'),
    );

  it.each<[what: string, counts: Record<string, number>, share: number, value: number]>([
    ['in the middle of a bucket', { '1': 0, '2': 10, '+Inf': 10 }, 0.5, 1.5],
    ['in the first bucket, from 0', { '1': 10, '2': 10, '+Inf': 10 }, 0.5, 0.5],
    ['at the end of a bucket', { '1': 5, '2': 10, '+Inf': 10 }, 0.5, 1],
    ['past empty buckets', { '1': 1, '2': 1, '3': 1, '4': 3, '+Inf': 3 }, 0.99, 3.985],
    ['beyond the last bound', { '1': 1, '2': 1, '+Inf': 100 }, 0.5, 2],
    ['of buckets in no order', { '+Inf': 10, '10': 10, '2': 0 }, 0.5, 6],
  ])('%s', (_what, counts, share, value) => {
    expect(quantileOf(histogram(counts), 'h', share)).toBeCloseTo(value, 9);
  });

  it.each([[{ '1': 0, '+Inf': 0 }], [{}]])('of nothing (%j) is none', counts =>
    expect(quantileOf(histogram(counts), 'h', 0.5)).toBeUndefined(),
  );
});

it('reads what the service writes', async () => {
  const source = createMetrics({
    size: () => ({ held: 3, waiting: 2, inFlight: 1 }),
    storeAvailable: () => true,
    runsHeld: () => 0,
  });
  for (const ms of [2, 2, 2, 400]) source.commit(ms);
  source.blocked('connect', 'not_global');
  const text = await source.text();
  const metrics = parseMetrics(text);
  const samples = text.split('\n').filter(line => line !== '' && !line.startsWith('#'));
  expect([...metrics.values()].flat()).toHaveLength(samples.length);
  expect(sumOf(metrics, 'afterword_deliveries_held')).toBe(3);
  expect(sumOf(metrics, 'afterword_targets_blocked_total', { at: 'connect' })).toBe(1);
  expect(sumOf(metrics, 'afterword_targets_blocked_total', { at: 'intake' })).toBe(0);
  expect(quantileOf(metrics, 'afterword_commit_duration_seconds', 0.5)).toBeCloseTo(0.002, 9);
  expect(quantileOf(metrics, 'afterword_commit_duration_seconds', 0.99)).toBeCloseTo(0.484, 9);
});
