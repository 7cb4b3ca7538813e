/** Actions by hand whose answer was lost: repeated, they change nothing and tell what they did. */
import { describe, expect, it } from 'vitest';
import { LATENCY_BOUNDS } from '../../../src/store/stats.ts';
import type { Next, Store } from '../../../src/store/store.ts';
import type { Database } from '../../support/postgres.ts';
import { attempt, newDelivery } from '../samples.ts';
import { losingRig } from './losing.ts';

const REJECTED: Next = { state: 'failed', reason: 'rejected' };
const JOB = { id: 'job', filter: { state: 'failed' }, createdAt: 1_800_000_000_000, total: 1 } as const;
const idempotency = { key: 'key', fingerprint: Buffer.from('print') };

const count = async (database: Database, from: string) =>
  (await database.query(`SELECT FROM ${from}`)).length;

async function settled(store: Store): Promise<string> {
  const delivery = newDelivery({ begunAt: Date.now() });
  await store.endAttempt(await store.insert(delivery), attempt(1), REJECTED);
  return delivery.runId;
}

describe('a lost answer', () => {
  it.each([
    ['without a key', {}],
    ['with a key', { idempotency }],
  ])('of a redelivery %s', async (_, key) => {
    const { database, store, losing } = await losingRig();
    const runId = await settled(store);
    const redelivered = await losing(
      () => store.ledger.redeliver({ runId, at: Date.now(), ...key }),
      async () => (await count(database, 'afterword_queue')) === 1,
      'COMMIT',
    );
    expect(redelivered).toEqual({ outcome: 'redelivered', round: 2 });
    expect(await store.find(runId)).toMatchObject({ state: 'pending', round: 2 });
  });

  it('of a redelivery that has ended since then', async () => {
    const { database, store, losing } = await losingRig();
    const runId = await settled(store);
    const redelivered = await losing(
      () => store.ledger.redeliver({ runId, at: Date.now() }),
      async () => {
        const moved = await database.query(`
          WITH q AS (DELETE FROM afterword_queue RETURNING *)
          INSERT INTO afterword_settled (id, state, round, settled_at, project, app, host)
          SELECT id, 1, round, 0, project, app, host FROM q RETURNING id`);
        return moved.length === 1;
      },
      'COMMIT',
    );
    expect(redelivered).toEqual({ outcome: 'redelivered', round: 2 });
    expect(await store.find(runId)).toMatchObject({ state: 'delivered', round: 2 });
  });

  it('of a cancellation', async () => {
    const { database, store, losing } = await losingRig();
    const delivery = newDelivery({ begunAt: Date.now() });
    await store.insert(delivery);
    const cancelled = await losing(
      () => store.ledger.cancel(delivery.runId, Date.now()),
      async () => (await count(database, 'afterword_settled')) === 1,
    );
    expect(cancelled).toBe('cancelled');
    expect((await store.find(delivery.runId))?.attempts).toHaveLength(1);
  });

  it('of an end that came too late for a cancellation is no end', async () => {
    const { database, store, losing } = await losingRig();
    const startedAt = Date.now();
    const delivery = newDelivery({ begunAt: startedAt });
    const ref = await store.insert(delivery);
    await store.ledger.cancel(delivery.runId, Date.now());
    const before = await store.find(delivery.runId);
    const written = await losing(
      () => store.endAttempt(ref, attempt(1, { startedAt }), REJECTED),
      async () => (await count(database, 'afterword_settled')) === 1,
    );
    expect(written).toBe(false);
    expect(await store.find(delivery.runId)).toEqual(before);
  });

  it('of a new job', async () => {
    const { database, store, losing } = await losingRig();
    const added = await losing(
      () => store.ledger.addJob({ ...JOB, idempotency }),
      async () => (await count(database, 'afterword_jobs')) === 1,
      'COMMIT',
    );
    expect(added).toMatchObject({ id: 'job', state: 'running' });
  });

  it('of the claim of a job', async () => {
    const { database, store, losing } = await losingRig();
    await store.ledger.addJob(JOB);
    const claimed = await losing(
      () => store.ledger.claimJob(),
      async () => (await count(database, 'afterword_jobs WHERE owner IS NOT NULL')) === 1,
    );
    expect(claimed).toMatchObject({ id: 'job' });
    expect(await store.ledger.stepJob(claimed!.ref, { runIds: [], at: 1 })).toMatchObject({ state: 'done' });
  });

  it.each([
    ['step', true],
    ['last step', false],
  ])('of the %s of a job', async (_, more) => {
    const { database, store, losing } = await losingRig();
    const runId = await settled(store);
    await store.ledger.addJob(JOB);
    const { ref } = (await store.ledger.claimJob())!;
    const stepped = await losing(
      () => store.ledger.stepJob(ref, { runIds: [runId], at: Date.now(), ...(more && { next: runId }) }),
      async () => (await count(database, 'afterword_jobs WHERE seen = 1')) === 1,
      'COMMIT',
    );
    expect(stepped).toMatchObject({ seen: 1, redelivered: 1, state: more ? 'running' : 'done' });
    expect(await store.ledger.findJob('job')).toEqual(stepped);
    expect(await store.find(runId)).toMatchObject({ state: 'pending', round: 2 });
  });

  it('of numbers', async () => {
    const { database, store, losing } = await losingRig();
    const minute = 1_800_000_000_000;
    const firstAttempts = Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 1);
    const counts = { calls: 3, callErrors: 0, made: 0, delivered: 0, failed: 0, firstAttempts };
    await losing(
      () => store.stats.add([{ projectId: 'p', minute, ...counts }], []),
      async () => (await count(database, 'afterword_minutes')) === 1,
    );
    await store.stats.add([{ projectId: 'p', minute, ...counts }], []);
    expect(await store.stats.spans({ since: minute, step: 60_000 })).toMatchObject([{ calls: 6 }]);
  });
});
