/**
 * The bench of the stores with a handful of deliveries: that it runs, notices what is wrong, and ends cleanly.
 * Its times are nobody's business here.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { bodyOf, isBodyOf, runIdOf } from '../bench/store/deliveries.ts';
import { assertSettled, chunksOf, type Ground } from '../bench/store/ground.ts';
import { drain, handOff, leave } from '../bench/store/lives.ts';
import type { Turn } from '../bench/store/measure.ts';
import { storeAt } from '../bench/store/place.ts';
import { asText, storeFigures } from '../bench/store/report.ts';
import { createSqliteGround } from '../bench/store/sqlite.ts';
import type { Store } from '../src/store/store.ts';
import { runIdAt, temporaryDirectory } from './store/samples.ts';

const RUN = join(import.meta.dirname, '..', 'bench', 'store', 'run.ts');
const bench = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [RUN, ...args]);

describe('a run', () => {
  it('takes deliveries of both sizes through both lives, on both databases', async () => {
    const scale = ['--deliveries', '20', '--rounds', '2', '--rows', '100'];
    const { stdout, stderr } = await bench('--only', 'sqlite', ...scale, '--json');
    const of = { store: 'sqlite', dispatchers: 1 };
    expect(JSON.parse(stdout)).toMatchObject({
      deliveries: 20,
      rows: 100,
      figures: [
        { ...of, life: 'handed off', size: 1024, deliveries: 80 },
        { ...of, life: 'claimed', size: 1024, deliveries: 80 },
        { ...of, life: 'handed off', size: 102_400, deliveries: 8 },
        { ...of, life: 'claimed', size: 102_400, deliveries: 8 },
      ],
    });
    expect(stderr).toContain('round 2 of 2: sqlite, claimed, 100 KiB');
  });

  it.each([
    ['--deliveries', '0'],
    ['--only', 'mysql'],
    ['--unknown', ''],
  ])('is refused with %s %s', async (...args) => {
    await expect(bench(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('Usage') });
  });
});

describe('a life', () => {
  const share = { deliveries: 7, size: 1024, inFlight: 3 };

  async function open(): Promise<{ ground: Ground; store: Store & AsyncDisposable }> {
    const ground = await createSqliteGround(temporaryDirectory());
    const store = storeAt(ground.place);
    await store.open();
    return { ground, store: { ...store, [Symbol.asyncDispose]: () => store.close() } };
  }

  it('ends with every delivery delivered once', async () => {
    const { ground, store } = await open();
    const since = Date.now();
    await using _closing = store;
    expect(await handOff(store, share)).toMatchObject({ settled: 7 });
    await leave(store, share);
    expect(await ground.tally(since)).toMatchObject({ pending: 7, delivered: 7 });
    expect(await drain(store, share)).toMatchObject({ settled: 7 });
    expect(await ground.tally(since)).toEqual({ pending: 0, delivered: 14, attempts: 14, attempted: 14 });
  });

  it.each<[fault: string, broken: Partial<Store>]>([
    ['could not be begun', { beginAttempt: async () => false }],
    ['has another body', { body: async () => ({ bytes: bodyOf(runIdAt(0), 1024) }) }],
    ['has another body', { body: async () => undefined }],
    ['could not be settled', { endAttempt: async () => false }],
  ])('notices a delivery that %s', async (fault, broken) => {
    const { store } = await open();
    await using _closing = store;
    await leave(store, share);
    await expect(drain({ ...store, ...broken }, share)).rejects.toThrow(fault);
  });
});

describe('a database', () => {
  it('is filled with deliveries of the past that the store finds, and emptied', async () => {
    const ground = await createSqliteGround(temporaryDirectory());
    const [from, until] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 4)];
    await ground.addPast({ deliveries: 30, from, until, size: 1024 });
    expect(await ground.tally(from)).toEqual({ pending: 0, delivered: 30, attempts: 30, attempted: 30 });
    expect(await ground.tally(Date.UTC(2026, 0, 3))).toMatchObject({ delivered: 10 });
    const store = storeAt(ground.place);
    await store.open();
    expect(await store.find(runIdOf(from))).toMatchObject({
      state: 'delivered',
      createdAt: from,
      attempts: [{ number: 1, status: 200 }],
    });
    await store.close();
    await ground.clear();
    expect(await ground.tally(from)).toEqual({ pending: 0, delivered: 0, attempts: 0, attempted: 0 });
  });

  it.each([0, 1, 49_999, 50_000, 50_001, 123_456])('is filled with %i in parts', count => {
    const chunks = [...chunksOf(count)];
    expect(chunks.reduce((sum, { first, last }) => sum + last - first + 1, 0)).toBe(count);
    expect(chunks.map(({ first }) => first)).toEqual([0, ...chunks.map(({ last }) => last + 1)].slice(0, -1));
  });

  it('has its turn refused unless all were delivered by one attempt', () => {
    const right = { pending: 0, delivered: 5, attempts: 5, attempted: 5 };
    expect(() => assertSettled(right, 5)).not.toThrow();
    for (const wrong of [{ pending: 1 }, { delivered: 4 }, { attempts: 6 }, { attempted: 4 }]) {
      expect(() => assertSettled({ ...right, ...wrong }, 5)).toThrow('of 5 deliveries');
    }
  });
});

describe('a body', () => {
  it.each([1024, 102_400])('of %i bytes is that of its own delivery alone', size => {
    const [one, other] = [runIdAt(1), runIdAt(2)];
    const bytes = bodyOf(one, size);
    expect(bytes.length).toBe(size);
    expect(JSON.parse(bytes.toString())).toMatchObject({ run_id: one });
    expect(isBodyOf(one, size, { bytes })).toBe(true);
    expect(isBodyOf(other, size, { bytes })).toBe(false);
  });
});

describe('the figures', () => {
  it('compare with the empty database of the same round', () => {
    // The machine is twice as slow in the second round and ten times in the third.
    const turns = [1, 2, 10].flatMap((slowness, round) => {
      const turn = (filled: boolean, totalMs: number): Turn => ({
        store: 'postgres',
        life: 'claimed',
        size: 1024,
        dispatchers: 2,
        filled,
        deliveries: 100,
        totalMs: totalMs * slowness,
        cpuMicros: 7,
        firstWrite: { p50Ms: 1, p99Ms: 2 },
      });
      const both = [turn(false, 80), turn(true, 100)];
      return round % 2 === 0 ? both : both.reverse();
    });
    const figures = storeFigures(turns);
    expect(figures).toEqual([
      {
        store: 'postgres',
        life: 'claimed',
        size: 1024,
        dispatchers: 2,
        deliveries: 600,
        emptyPerSecond: 625,
        filledPerSecond: 500,
        filledToEmpty: 0.8,
        cpuMicros: 7,
        firstWrite: { p50Ms: 1, p99Ms: 2 },
      },
    ]);
    expect(asText(figures)).toMatch(/postgres, claimed, 1 KiB, 2 dispatchers +625 +500 +0\.80/);
  });
});
