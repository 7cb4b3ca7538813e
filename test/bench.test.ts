/**
 * The bench with a handful of calls: that it runs, checks what it measures, and ends cleanly. Its times are
 * nobody's business here.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Turn } from '../bench/measure.ts';
import { callFigures, commitFigures, deliveryFigures, median } from '../bench/report.ts';
import { SUBJECTS, type Subject } from '../bench/stand.ts';
import { answerOf, requestOf, sizeAsked } from '../bench/workload.ts';

const RUN = join(import.meta.dirname, '..', 'bench', 'run.ts');
const bench = (...args: string[]): Promise<{ stdout: string }> =>
  promisify(execFile)(process.execPath, [RUN, ...args]);

describe('a run', () => {
  it('has every answer and every delivery checked, and gives all figures', async () => {
    const scale = ['--calls', '20', '--rounds', '1', '--connections', '3'];
    const { figures } = JSON.parse((await bench(...scale, '--json')).stdout);
    const rows = ['GET', 'POST'].flatMap(method =>
      SUBJECTS.map(subject => ({
        subject,
        method,
        calls: 20,
        deliveries: subject === 'afterword, with webhook' ? 20 : 0,
      })),
    );
    expect(figures.calls).toEqual(rows.map(row => expect.objectContaining(row)));
    expect(figures.deliveries).toEqual([
      expect.objectContaining({ size: 1024, deliveries: 20 }),
      expect.objectContaining({ size: 102_400, deliveries: 3 }),
    ]);
    expect(figures.commit).toMatchObject({ calls: 2 });
  }, 60_000);

  it.each([
    ['--calls', '0'],
    ['--only', 'nothing'],
    ['--unknown', ''],
  ])('is refused with %s %s', async (...args) => {
    await expect(bench(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('Usage') });
  });
});

describe('the workload', () => {
  it.each([1024, 102_400])('has answers of %i bytes, in JSON', size => {
    const answer = answerOf(size);
    expect(answer.length).toBe(size);
    expect(() => JSON.parse(answer.toString())).not.toThrow();
  });

  it.each([undefined, 'http://127.0.0.1:9/hook/7?a=b'])('asks for its size, with the target %s', target => {
    const [line] = requestOf({ method: 'GET', size: 2048, token: 't', target }).split('\r\n');
    expect(sizeAsked(line!.split(' ')[1]!)).toBe(2048);
  });

  it('posts a body as long as it says', () => {
    const [head, body] = requestOf({ method: 'POST', size: 1024, token: 't' }).split('\r\n\r\n');
    expect(head).toContain(`Content-Length: ${body!.length}`);
  });
});

describe('the figures', () => {
  const turn = (subject: Subject, given: Partial<Turn>): Turn => ({
    subject,
    method: 'GET',
    size: 1024,
    calls: 100,
    deliveries: 0,
    cpuMicros: 1,
    wallMs: 1,
    totalMs: 1,
    p50Ms: 1,
    p99Ms: 1,
    ...given,
  });

  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 2, 3], 2.5],
    [[7], 7],
  ])('take the median of %j', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it('compare with the peer of the same round', () => {
    // The machine is twice as slow in the second round and ten times in the third.
    const turns = [1, 2, 10].flatMap(slowness =>
      SUBJECTS.map((subject, i) => turn(subject, { cpuMicros: (i + 1) * slowness, wallMs: 50 * slowness })),
    );
    const figures = callFigures(turns);
    expect(figures.map(({ ratioToPeer }) => ratioToPeer)).toEqual([0.5, 1, 1.5, 2, 2.5]);
    expect(figures[0]).toMatchObject({ calls: 300, cpuMicros: 2, callsPerSecond: 1000 });
  });

  it('count deliveries to the arrival of the last one', () => {
    const given = { deliveries: 100, wallMs: 10, totalMs: 200 };
    const [figures] = deliveryFigures([turn('afterword, with webhook', given)]);
    expect(figures).toMatchObject({ size: 1024, deliveries: 100, deliveriesPerSecond: 500 });
  });

  it('take what a commit adds within each round', () => {
    const rounds = [1, 5, 9].flatMap(base => [
      turn('afterword', { p50Ms: base, p99Ms: base * 2 }),
      turn('afterword, with webhook', { p50Ms: base + 0.5, p99Ms: base * 2 + 1 }),
    ]);
    expect(commitFigures(rounds, { p50Ms: 0, p99Ms: 0 }).added).toEqual({ p50Ms: 0.5, p99Ms: 1 });
  });
});
