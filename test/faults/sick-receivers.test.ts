/**
 * Sick receivers, all at once: they cost themselves alone. A healthy one gets its deliveries as if they were
 * not there, the service's memory stays bounded, and nothing that they say makes it dial where it must not.
 */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openApp } from '../support/app.ts';
import { type Addresses, configure, openStoreOf, type Place, readMetric, serve } from '../support/process.ts';
import {
  expectUntouched,
  hostile,
  type Receiver,
  startHostile,
  startReceiver,
} from '../support/receivers.ts';
import { PROJECT, testToken } from '../support/service.ts';

const MIB = 1024 * 1024;
const SOON = { timeout: 30_000, interval: 20 };
/** The only address that is open as a target; the canary is on another. */
const OPEN = { host: '127.0.0.2' };
const PER_TARGET = 32;
const SICK_CALLS = 50;
const HEALTHY_CALLS = 150;

type Call = (target: string) => Promise<Response>;

async function prepare(): Promise<{ place: Place; callAt: (addresses: Addresses) => Call }> {
  const app = await openApp(
    (_, res) => void res.setHeader('Content-Type', 'application/json').end('{"n":1}'),
  );
  onTestFinished(() => app.close());
  const place = configure({
    apps: { app: { runtime: 'custom', url: app.url } },
    // However slow the machine, no attempt on the hanging receiver ends while this is looked at.
    webhooks: { allowTargets: ['127.0.0.2/32'], perTarget: PER_TARGET, attemptTimeout: '2m' },
  });
  const headers = { authorization: `Bearer ${await testToken()}` };
  const callAt: (addresses: Addresses) => Call =
    ({ base }) =>
    target =>
      fetch(`${base}/v4/${PROJECT}/app/x?webhookEndpoint=${encodeURIComponent(target)}`, { headers });
  return { place, callAt };
}

/** Notes when each run's delivery came. */
async function startHealthy(): Promise<{ receiver: Receiver; arrivals: Map<string, number> }> {
  const arrivals = new Map<string, number>();
  const receiver = await startReceiver(({ headers }, response) => {
    arrivals.set(String(headers['x-request-id']), performance.now());
    response.end();
  }, OPEN);
  return { receiver, arrivals };
}

async function startSick(canary: Receiver): Promise<Record<string, Receiver>> {
  const redirectTo = (location: string): Promise<Receiver> =>
    startReceiver((_, response) => response.writeHead(302, { Location: location }).end(), OPEN);
  return {
    hanging: await startHostile(hostile.neverAnswers, OPEN),
    trickling: await startHostile(hostile.tricklesTheBody, OPEN),
    resetting: await startHostile(hostile.resetsAfterReading, OPEN),
    flooding: await startHostile(hostile.floodsTheBody, OPEN),
    floodingHeaders: await startHostile(hostile.floodsTheHeaders, OPEN),
    redirecting: await redirectTo(canary.url),
    redirectingToMetadata: await redirectTo('http://169.254.169.254/latest/meta-data/'),
  };
}

interface Healthy {
  readonly runIds: readonly string[];
  /** From the caller's answer to the delivery, in milliseconds, in order. */
  readonly latencies: readonly number[];
}

/** A steady trickle of calls to the healthy receiver, until all of them are delivered. */
async function callHealthy(
  call: Call,
  { receiver, arrivals }: Awaited<ReturnType<typeof startHealthy>>,
): Promise<Healthy> {
  const answered = new Map<string, number>();
  const lane = async (): Promise<void> => {
    for (let calls = 0; calls < HEALTHY_CALLS / 5; calls += 1) {
      const response = await call(receiver.url);
      await response.arrayBuffer();
      answered.set(response.headers.get('x-request-id')!, performance.now());
      await setTimeout(5);
    }
  };
  await Promise.all([lane(), lane(), lane(), lane(), lane()]);
  const runIds = [...answered.keys()];
  await vi.waitUntil(() => runIds.every(runId => arrivals.has(runId)), SOON);
  const latencies = runIds.map(runId => Math.max(0, arrivals.get(runId)! - answered.get(runId)!));
  return { runIds, latencies: latencies.sort((one, other) => one - other) };
}

const median = (ordered: readonly number[]): number => ordered[Math.floor(ordered.length / 2)]!;

/** The most memory that the service has had while `work` went on. */
async function peakMemory<T>(
  addresses: Addresses,
  work: () => Promise<T>,
): Promise<{ result: T; peak: number }> {
  const working = work();
  const ended = working.then(
    () => true,
    () => true,
  );
  let peak = 0;
  do peak = Math.max(peak, await readMetric(addresses, 'resident_memory_bytes'));
  while (!(await Promise.race([ended, setTimeout(50, false)])));
  return { result: await working, peak };
}

async function expectForbidden(call: Call, targets: readonly string[]): Promise<void> {
  for (const target of targets) {
    const response = await call(target);
    expect([target, response.status]).toEqual([target, 400]);
    expect(await response.json()).toMatchObject({ code: 'forbidden_target' });
  }
}

describe('sick receivers', () => {
  it('hold up no healthy one, fill no memory and lead nowhere', async () => {
    const { place, callAt } = await prepare();
    await using canary = await startHostile(hostile.closesAtOnce);
    const healthy = await startHealthy();
    const sick = await startSick(canary);
    onTestFinished(async () => {
      for (const each of [healthy.receiver, ...Object.values(sick)]) await each.close();
    });
    const service = serve(place);
    const addresses = await service.ready;
    const call = callAt(addresses);

    const alone = await callHealthy(call, healthy);
    const before = await readMetric(addresses, 'resident_memory_bytes');
    const { result: among, peak } = await peakMemory(addresses, async () => {
      const targets = Object.values(sick).flatMap(({ url }) => Array<string>(SICK_CALLS).fill(url));
      await Promise.all(targets.map(async target => (await call(target)).arrayBuffer()));
      await vi.waitUntil(() => sick['hanging']!.sockets.size === PER_TARGET, SOON);
      const result = await callHealthy(call, healthy);
      // Not one of the first attempts on the hanging receiver has ended so far: nobody has waited for it.
      expect(sick['hanging']!.connections).toBe(PER_TARGET);
      expect(sick['hanging']!.sockets.size).toBe(PER_TARGET);
      return result;
    });
    expect(median(among.latencies)).toBeLessThan(20 * median(alone.latencies) + 100);
    expect(peak - before).toBeLessThan(200 * MIB);

    await expectForbidden(call, [
      canary.url,
      'http://169.254.169.254/latest/meta-data/',
      `http://localhost:${canary.port}/`,
      `http://[::ffff:127.0.0.1]:${canary.port}/`,
      `http://2130706433:${canary.port}/`,
      addresses.admin,
    ]);
    // Every redirect has been answered for the last time, and was not followed.
    const redirects = (): number => sick['redirecting']!.requests.length;
    await vi.waitUntil(() => redirects() === 3 * SICK_CALLS, SOON);
    await expectUntouched(canary);
    const redirected = String(sick['redirecting']!.requests[0]!.headers['x-request-id']);
    const failed = new RegExp(`"run_id":"${redirected}".*"msg":"delivery failed"`);
    await vi.waitUntil(() => failed.test(service.stderr), SOON);

    await service.kill();
    const store = await openStoreOf(place);
    const states = await Promise.all([...alone.runIds, ...among.runIds].map(runId => store.find(runId)));
    expect(states.filter(record => record?.state !== 'delivered')).toEqual([]);
    expect(await store.find(redirected)).toMatchObject({
      state: 'failed',
      reason: 'exhausted',
      attempts: [{ status: 302 }, {}, {}],
    });
  });
});
