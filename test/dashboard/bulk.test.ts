/** Redelivery of many from the page. */
import { describe, expect, it } from 'vitest';
import type { Job } from '../../dashboard/src/api/shapes.ts';
import {
  countedText,
  jobText,
  type Outcome,
  type Report,
  redeliverEach,
  reportText,
  seenOf,
} from '../../dashboard/src/bulk.ts';

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

describe('one by one', () => {
  it('asks for each once, a few at a time, and reports all', async () => {
    const asked: string[] = [];
    const seen: number[] = [];
    let [under, most] = [0, 0];
    const redeliver = async (runId: string): Promise<Outcome> => {
      asked.push(runId);
      most = Math.max(most, (under += 1));
      await new Promise(resolve => void setImmediate(resolve));
      under -= 1;
      if (runId === '3') return 'skipped';
      return runId === '7' ? { failed: 'Nothing can be stored' } : 'redelivered';
    };
    const report = await redeliverEach(ids(20), { redeliver, onProgress: each => seen.push(seenOf(each)) });
    expect(asked.toSorted((a, b) => Number(a) - Number(b))).toEqual(ids(20));
    expect(most).toBe(4);
    expect(seen).toEqual(ids(20).map(each => Number(each) + 1));
    expect(report).toEqual({
      total: 20,
      redelivered: 18,
      skipped: 1,
      failures: [{ runId: '7', why: 'Nothing can be stored' }],
    });
  });

  it.each<[Omit<Report, 'total'>, string]>([
    [{ redelivered: 1204, skipped: 0, failures: [] }, '1,204 redelivered'],
    [{ redelivered: 1, skipped: 2, failures: [] }, '1 redelivered · 2 skipped, under way already'],
    [{ redelivered: 0, skipped: 0, failures: [{ runId: '1', why: 'no' }] }, '0 redelivered · 1 refused'],
  ])('%j', (report, text) => {
    expect(reportText({ total: 9, ...report })).toBe(text);
  });
});

describe('by a job', () => {
  it.each([
    [{ matching: 1, exact: true }, '1 delivery'],
    [{ matching: 1204, exact: true }, '1,204 deliveries'],
    [{ matching: 90_000, exact: false }, 'at least 90,000 deliveries'],
  ])('%j', (counted, text) => {
    expect(countedText(counted)).toBe(text);
  });

  it.each<[Partial<Job>, string]>([
    [{ state: 'running', total: 1204, seen: 200, redelivered: 190 }, 'Redelivering: 200 of 1,204'],
    [{ state: 'running', total: 100, seen: 200, redelivered: 190 }, 'Redelivering: 200 of 200'],
    [{ state: 'done', total: 200, seen: 200, redelivered: 200 }, '200 redelivered'],
    [
      { state: 'done', total: 200, seen: 200, redelivered: 190 },
      '190 redelivered · 10 skipped, under way already',
    ],
  ])('%j', (job, text) => {
    expect(jobText({ job_id: '1', created_at: '', ...job } as Job)).toBe(text);
  });
});
