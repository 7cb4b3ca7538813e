/**
 * What is acknowledged survives: under load the service is killed and started again at random moments, and
 * in the end every run whose caller had its whole answer has met its fate, as the contract has it.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { startLoad } from '../support/load.ts';
import {
  type Addresses,
  configure,
  openStoreOf,
  type Place,
  readMetric,
  serve,
  type ServiceProcess,
} from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { openMoodyReceiver } from './moody-receiver.ts';
import { openSizedApp } from './sized-app.ts';
import { ended, expectLawful, expectSettled, unmet } from './verdict.ts';

const KILLS = process.env['AFTERWORD_FAULTS'] === 'long' ? 500 : 12;
/** The latest moment of a kill, after the start or after the service was ready. */
const LATEST_MS = 900;
const SETTLED = { timeout: 30_000, interval: 100 };

async function prepare(): Promise<Place> {
  return configure({
    apps: await openSizedApp(),
    // The promise is that of the disk: an answer that is let go before its delivery is stored has none.
    webhooks: { attemptTimeout: '3s', commitWait: '10s' },
  });
}

/** One kill in four comes while it starts, the others while it serves. */
async function killAtRandom(service: ServiceProcess, onReady: (at: Addresses) => void): Promise<void> {
  const ready = service.ready.then(onReady, () => {});
  if (Math.random() < 0.75) await ready;
  await setTimeout(Math.random() * LATEST_MS);
  await service.kill();
  await ready;
}

describe('a service that is killed again and again', () => {
  it(`delivers what ${KILLS} kills could have cost`, async () => {
    const place = await prepare();
    const receiver = await openMoodyReceiver('the secret of the load');
    const load = startLoad({ token: await testToken(), target: receiver.url });

    for (let kill = 0; kill < KILLS; kill += 1) {
      await killAtRandom(serve(place), ({ port }) => load.aim(port));
      load.aim(undefined);
      await receiver.nextLife();
    }

    const service = serve(place);
    const addresses = await service.ready;
    const before = load.answers.length;
    load.aim(addresses.port);
    await vi.waitUntil(() => load.answers.length > before + 50, SETTLED);
    const answers = await load.stop();
    await vi.waitFor(() => expect(unmet(answers, receiver.posts)).toEqual([]), SETTLED);
    await vi.waitFor(async () => expect(await readMetric(addresses, 'deliveries_held')).toBe(0), SETTLED);
    expect(await service.stop()).toEqual({ code: 0, signal: null });

    expect(answers.length).toBeGreaterThan(KILLS * 3);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expectLawful(answers, receiver.posts, ended);
    const store = await openStoreOf(place);
    await expectSettled(store, answers);
    await expectNoOrphans(store, place);
  });
});

/** No file is left that belongs to no delivery. */
async function expectNoOrphans(store: Store, { data }: Place): Promise<void> {
  const files = await readdir(join(data, 'spool'));
  const known = await Promise.all(files.map(file => store.find(file).catch(() => undefined)));
  expect(files.filter((_, index) => known[index] === undefined)).toEqual([]);
}
