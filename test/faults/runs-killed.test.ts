/**
 * Asynchronous calls survive: under load the service is killed and started again at random moments, and in the
 * end every run whose caller had its 202 has ended once, as it is permitted to, and was delivered if it asked.
 */
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import {
  type Addresses,
  configure,
  openStoreOf,
  readMetric,
  serve,
  type ServiceProcess,
} from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { openMoodyReceiver } from './moody-receiver.ts';
import { createRunCallers, WEBHOOK_SECRET } from './run-callers.ts';
import { openRunsApp } from './runs-app.ts';
import { type Ends, expectEnded, expectNoOrphans, expectOnRecord, lookAt } from './runs-verdict.ts';
import { ended, unmet } from './verdict.ts';

const [KILLS, RUNS_OF_EACH] = process.env['AFTERWORD_FAULTS'] === 'long' ? [20, 100] : [3, 40];
/** The latest moment of a kill, after the start or after the service was ready. */
const LATEST_MS = 900;
const CONCURRENCY = 8;
const SETTLED = { timeout: 40_000, interval: 100 };

/** One kill in four comes while it starts, the others while it serves. */
async function killAtRandom(
  service: ServiceProcess,
  onReady: (at: Addresses) => Promise<void>,
): Promise<void> {
  const ready = service.ready.then(onReady).catch(() => {}); // it was killed before
  if (Math.random() < 0.75) await ready;
  await setTimeout(Math.random() * LATEST_MS);
  await service.kill();
  await ready;
}

describe('asynchronous calls to a service that is killed again and again', () => {
  it(`${KILLS} kills, ${RUNS_OF_EACH} runs around each: all of them end once`, async () => {
    const app = await openRunsApp(CONCURRENCY);
    const receiver = await openMoodyReceiver(WEBHOOK_SECRET);
    const place = configure({ apps: app.apps, webhooks: { attemptTimeout: '3s' } });
    const token = await testToken();
    const callers = createRunCallers({ token, target: receiver.url });
    const ends: Ends = new Map();

    const quotas: Promise<void>[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      quotas.push(callers.accept(RUNS_OF_EACH));
      await killAtRandom(serve(place), async ({ port, base }) => {
        callers.aim(port);
        // An end that is seen now must be the same when it is looked at last.
        await lookAt({ base, token }, callers.accepted.slice(-RUNS_OF_EACH), ends);
      });
      callers.aim(undefined);
      await receiver.nextLife();
    }

    const service = serve(place);
    const addresses = await service.ready;
    callers.aim(addresses.port);
    await Promise.all(quotas);
    const { accepted: runs, refused } = callers;
    await lookAt({ base: addresses.base, token }, runs, ends, '60s');
    const delivered = runs.filter(({ webhook }) => webhook);
    await vi.waitFor(() => expect(unmet(delivered, receiver.posts)).toEqual([]), SETTLED);
    await vi.waitFor(async () => expect(await readMetric(addresses, 'deliveries_held')).toBe(0), SETTLED);
    expect(await service.stop()).toEqual({ code: 0, signal: null });

    expect(refused).toEqual([]);
    expect(runs.length).toBe(KILLS * RUNS_OF_EACH);
    expectEnded(runs, ends, app);
    expect(Math.max(...Object.values(app.peaks))).toBeLessThanOrEqual(CONCURRENCY);
    const store = await openStoreOf(place);
    await expectOnRecord(store, { runs, ends, receiver, lost: ended });
    await expectNoOrphans(store, join(place.data, 'spool'));
  });
});
