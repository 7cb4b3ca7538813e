/**
 * The thread of the database is lost: it is started anew, and what it may or may not have committed is
 * there exactly once.
 */
import { Worker } from 'node:worker_threads';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { NewRun } from '../../../src/store/runs.ts';
import { attempt, newDelivery, newRun, temporaryDirectory } from '../samples.ts';
import { openTestStore } from './opening.ts';

const WEBHOOK = { target: 'https://receiver.example/hook', confidential: {} };

const workers: Worker[] = vi.hoisted(() => []);

vi.mock('node:worker_threads', async importOriginal => {
  const original = await importOriginal<typeof import('node:worker_threads')>();
  class NotedWorker extends original.Worker {
    constructor(...args: ConstructorParameters<typeof original.Worker>) {
      super(...args);
      workers.push(this);
    }
  }
  return { ...original, Worker: NotedWorker };
});

async function openHere() {
  const dir = temporaryDirectory();
  return openTestStore({ dir, spoolDir: join(dir, 'spool') });
}

const turns = async (count: number) => {
  for (let i = 0; i < count; i += 1) await new Promise<void>(resolve => setImmediate(resolve));
};

describe('a lost thread', () => {
  it.each([0, 1, 5, 20, 60])('in the middle of inserts, after %d turns', async count => {
    const store = await openHere();
    const deliveries = Array.from({ length: 600 }, () => newDelivery());
    const inserts = Promise.all(deliveries.map(delivery => store.insert(delivery)));
    await turns(count);
    await workers.at(-1)!.terminate();
    const refs = await inserts;
    expect(new Set(refs)).toHaveLength(600);
    // It may have been lost after the last of them: only what is answered after that shows that it is back.
    expect((await store.backlog()).pending.get('p-demo')).toBe(600);
    expect(store.available).toBe(true);
  });

  it('in the middle of attempts', async () => {
    const store = await openHere();
    const deliveries = Array.from({ length: 200 }, () => newDelivery());
    const refs = await Promise.all(deliveries.map(delivery => store.insert(delivery)));
    const rounds = refs.map(async ref => {
      const startedAt = Date.now();
      const begun = await store.beginAttempt(ref, startedAt);
      return begun && store.endAttempt(ref, attempt(1, { startedAt }), { state: 'delivered' });
    });
    await turns(3);
    await workers.at(-1)!.terminate();
    expect(new Set(await Promise.all(rounds))).toEqual(new Set([true]));
    const found = await Promise.all(deliveries.map(({ runId }) => store.find(runId)));
    expect(found.filter(record => record?.state !== 'delivered' || record.attempts.length !== 1)).toEqual([]);
  });

  it.each([1, 5, 20])('in the middle of runs, after %d turns', async count => {
    const store = await openHere();
    const wanted = [{ projectId: 'p-demo', app: 'hello', limit: 1_000, each: false }];
    const end = { state: 'succeeded', endedAt: Date.now(), statusCode: 200 } as const;
    const carryOut = async (run: NewRun) => {
      expect(await store.runs.insert(run)).toEqual({ outcome: 'inserted' });
      const claimed = await store.runs.claim(wanted);
      return Promise.all(
        claimed.map(async ({ ref, runId }) => {
          expect(await store.runs.begin(ref, Date.now())).toBe('begun');
          return store.runs.end(ref, end, { delivery: newDelivery({ runId }) });
        }),
      );
    };
    const runs = Array.from({ length: 200 }, () => newRun({ webhook: WEBHOOK }));
    const carried = Promise.all(runs.map(carryOut));
    await turns(count);
    await workers.at(-1)!.terminate();
    const refs = (await carried).flat().map(ended => ended?.delivery);
    expect(new Set(refs)).toHaveLength(200);
    const found = await Promise.all(runs.map(({ runId }) => store.runs.find('p-demo', runId)));
    expect(found.filter(record => record?.state !== 'succeeded' || record.starts !== 1)).toEqual([]);
    expect((await store.backlog()).pending.get('p-demo')).toBe(200);
  });

  it('with nothing to do is replaced before anyone asks', async () => {
    const store = await openHere();
    const before = workers.length;
    await workers.at(-1)!.terminate();
    expect(store.available).toBe(false);
    await vi.waitFor(() => expect(store.available).toBe(true), { timeout: 10_000, interval: 20 });
    expect(workers).toHaveLength(before + 1);
    await store.insert(newDelivery());
  });
});
