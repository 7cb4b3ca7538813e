/**
 * An `Idempotency-Key` on two nodes at the same moment: whichever of them is first, there is one run.
 */
import { expect, it, onTestFinished, vi } from 'vitest';
import { openApp } from '../support/app.ts';
import { configureNode, openRecords } from '../support/nodes.ts';
import { createDatabase } from '../support/postgres.ts';
import { serve } from '../support/process.ts';
import { PROJECT, testToken } from '../support/service.ts';

const KEYS = 200;
const SOON = { timeout: 30_000, interval: 20 };

interface Taken {
  readonly runId: string;
  readonly replayed: boolean;
}

it(`${KEYS} keys, each sent to two nodes at once, make one run each`, async () => {
  const arrivals: string[] = [];
  const app = await openApp((req, res) => {
    arrivals.push(String(req.headers['x-request-id']));
    req.resume().on('end', () => res.end());
  });
  onTestFinished(() => app.close());
  const database = await createDatabase();
  const apps = { web: { runtime: 'custom', url: app.url } } as const;
  const places = [configureNode(database, { apps }), configureNode(database, { apps })];
  const services = places.map(place => serve(place));
  const nodes = await Promise.all(services.map(({ ready }) => ready));
  const authorization = `Bearer ${await testToken()}`;

  const call = async (base: string, key: string): Promise<Taken> => {
    const headers = { authorization, 'idempotency-key': key };
    const url = `${base}/v4/${PROJECT}/web/run?async=true`;
    const answer = await fetch(url, { method: 'POST', headers, body: key });
    expect(answer.status).toBe(202);
    const { run_id: runId } = (await answer.json()) as { run_id: string };
    return { runId, replayed: answer.headers.get('idempotency-replayed') === 'true' };
  };

  const runIds = new Set<string>();
  for (let number = 0; number < KEYS; number += 1) {
    const taken = await Promise.all(nodes.map(({ base }) => call(base, `key-${number}`)));
    expect(taken.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(taken[0]!.runId).toBe(taken[1]!.runId);
    runIds.add(taken[0]!.runId);
  }
  expect(runIds.size).toBe(KEYS);

  const store = await openRecords(places[0]!);
  await vi.waitFor(async () => expect(await store.runs.ended([...runIds])).toHaveLength(KEYS), SOON);
  expect(arrivals.toSorted()).toEqual([...runIds].toSorted());
  expect(await store.runs.list({}, { limit: 2 * KEYS })).toHaveLength(KEYS);
  for (const service of services) expect(await service.stop()).toEqual({ code: 0, signal: null });
});
