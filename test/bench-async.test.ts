/**
 * The bench of asynchronous calls with a handful of them: that it runs, notices what is wrong, and ends cleanly.
 * Its times are nobody's business here.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { asyncRequestOf, runIdIn } from '../bench/async/calls.ts';
import type { Turn } from '../bench/async/measure.ts';
import { asText, asyncFigures } from '../bench/async/report.ts';
import { REQUEST_BYTES } from '../bench/workload.ts';
import { runIdAt } from './store/samples.ts';

const RUN = join(import.meta.dirname, '..', 'bench', 'async', 'run.ts');
const bench = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [RUN, ...args]);

describe('a run', () => {
  it('has every call accepted and carried out once, on both stores and with either queue', async () => {
    const scale = ['--calls', '20', '--depth', '30', '--rounds', '1', '--connections', '3'];
    const { stdout, stderr } = await bench(...scale, '--postgres', '--json');
    const cases = ['sqlite', 'postgres'].flatMap(store =>
      [4, 32].map(concurrency => ({ store, concurrency, calls: 40 })),
    );
    expect(JSON.parse(stdout)).toMatchObject({ calls: 20, depth: 30, figures: cases });
    expect(stderr).toContain('round 1 of 1: postgres, 32 at once');
  }, 60_000);

  it.each([
    ['--calls', '0'],
    ['--depth', 'deep'],
    ['--unknown', ''],
  ])('is refused with %s %s', async (...args) => {
    await expect(bench(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('Usage') });
  });
});

describe('a call', () => {
  const runId = runIdAt(1);
  const body = `{"run_id":"${runId}"}`;
  const answer = (status: string, text: string): string => `HTTP/1.1 ${status}\r\nA: b\r\n\r\n${text}`;

  it('has a body as long as it says', () => {
    const [head, sent] = asyncRequestOf('app', 'token').split('\r\n\r\n');
    expect(head).toContain(`Content-Length: ${sent!.length}`);
    expect(sent!.length).toBe(REQUEST_BYTES);
  });

  it('gets its run once the answer is whole', () => {
    const whole = answer('202 Accepted', body);
    expect(runIdIn(whole)).toBe(runId);
    for (let length = 0; length < whole.length; length += 1) {
      expect(runIdIn(whole.slice(0, length))).toBeUndefined();
    }
  });

  it.each([
    ['another status', answer('200 OK', body)],
    ['more than a run', answer('202 Accepted', `${body} `)],
    ['no run', answer('202 Accepted', `{"run":"${runId}"}   `)],
  ])('is refused with %s', (_fault, text) => {
    expect(() => runIdIn(text)).toThrow('not as it should be');
  });
});

describe('the figures', () => {
  it('compare with the empty queue of the same round', () => {
    // The machine is twice as slow in the second round and ten times in the third.
    const turns = [1, 2, 10].flatMap((slowness, round) => {
      const turn = (deep: boolean, factor: number): Turn => ({
        store: 'sqlite',
        concurrency: 4,
        deep,
        calls: 100,
        wallMs: 50 * factor * slowness,
        totalMs: 100 * factor * slowness,
        p50Ms: 1 * factor * slowness,
        p99Ms: 2 * factor * slowness,
        cpuMicros: 7,
      });
      const both = [turn(false, 1), turn(true, 1.25)];
      return round % 2 === 0 ? both : both.reverse();
    });
    const figures = asyncFigures(turns);
    expect(figures).toEqual([
      {
        store: 'sqlite',
        concurrency: 4,
        calls: 600,
        acceptedPerSecond: { empty: 1000, deep: 800, deepToEmpty: 0.8 },
        p50Ms: { empty: 2, deep: 2.5, deepToEmpty: 1.25 },
        p99Ms: { empty: 4, deep: 5, deepToEmpty: 1.25 },
        carriedOutPerSecond: { empty: 500, deep: 400, deepToEmpty: 0.8 },
        cpuMicros: { empty: 7, deep: 7, deepToEmpty: 1 },
      },
    ]);
    expect(asText(figures)).toMatch(/sqlite, 4 at once: 202 p99 ms +4\.00 +5\.00 +1\.25/);
  });
});
