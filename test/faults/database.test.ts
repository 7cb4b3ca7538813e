/**
 * PostgreSQL that crashes or freezes under load and comes back: calls with a webhook get their answer or are refused
 * before their app runs, calls without one notice nothing, and in the end nothing is lost and nothing was
 * sent twice, since no node had died.
 */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { callRaw } from '../support/caller.ts';
import { type Load, startLoad } from '../support/load.ts';
import { openRecords } from '../support/nodes.ts';
import { type Addresses, readMetric, serve } from '../support/process.ts';
import { PROJECT, testToken } from '../support/service.ts';
import {
  LONG,
  prepare,
  type Rig,
  SETTLED,
  SOON,
  stopAll,
  untilNothingIsHeld,
  untilReadiness,
} from './nodes.ts';
import { expectLawful, expectSettled, recordsOf, unmet } from './verdict.ts';

const MIB = 1024 * 1024;
const RESTARTS = LONG ? 30 : 3;
/** Beyond the time after which a node that cannot show that it lives is taken for dead. */
const OUTAGE_MS = 6_000;
/** A crash ends all connections; one that is frozen keeps them, and gives no answer. */
const OUTAGES: readonly Outage[] = [
  { fault: 'crash', ms: 0 },
  { fault: 'crash', ms: OUTAGE_MS },
  ...(LONG ? [{ fault: 'freeze', ms: OUTAGE_MS } as const] : []),
];
const LANES = 4;

interface Outage {
  readonly fault: 'crash' | 'freeze';
  /** It lasts until everybody has noticed, and at least so long. */
  readonly ms: number;
}

interface Loads {
  readonly withWebhook: readonly Load[];
  readonly without: readonly Load[];
}

async function startLoads({ receiver }: Rig, nodes: readonly Addresses[]): Promise<Loads> {
  const token = await testToken();
  const start = (target: { target?: string }): Load[] =>
    nodes.map(({ port }) => {
      const load = startLoad({ token, lanes: LANES, ...target });
      load.aim(port);
      return load;
    });
  return { withWebhook: start({ target: receiver.url }), without: start({}) };
}

const countOf = (load: Load, status: number): number =>
  load.answers.filter(answer => answer.status === status).length;

/** Waits until all callers of all loads have got more answers of this status. */
async function untilMore(loads: readonly Load[], status: number, answers = 30): Promise<void> {
  const before = loads.map(load => countOf(load, status));
  const more = (): boolean => loads.every((load, index) => countOf(load, status) >= before[index]! + answers);
  await vi.waitUntil(more, SOON);
}

/** Calls that wait for their commit hold up those behind them, so this asks by itself. */
async function expectRefused({ receiver }: Rig, { port }: Addresses): Promise<void> {
  const answer = await callRaw({
    port,
    method: 'POST',
    path: `/v4/${PROJECT}/custom/run?webhookEndpoint=${encodeURIComponent(receiver.url)}`,
    headers: [`Authorization: Bearer ${await testToken()}`],
    body: '{"size":10}',
  });
  expect(answer.status).toBe(503);
  expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'store_unavailable' });
}

async function goAway(
  rig: Rig,
  nodes: readonly Addresses[],
  { without }: Loads,
  { fault, ms }: Outage,
): Promise<void> {
  if (fault === 'crash') await rig.server.stop('immediate');
  else rig.server.pause();
  const away = setTimeout(ms);
  await Promise.all(nodes.map(node => untilReadiness(node, 503)));
  for (const node of nodes) await expectRefused(rig, node);
  await untilMore(without, 200);
  await away;
  if (fault === 'crash') await rig.server.start();
  else rig.server.resume();
  await Promise.all(nodes.map(node => untilReadiness(node, 200)));
}

function memoryOf(nodes: readonly Addresses[]): Promise<number[]> {
  return Promise.all(nodes.map(node => readMetric(node, 'resident_memory_bytes')));
}

describe('a database that crashes under load', () => {
  it(`${RESTARTS + OUTAGES.length} times: callers get answers or are refused in time, and nothing is lost`, async () => {
    const rig = await prepare(2);
    const { server, receiver, places } = rig;
    const processes = places.map(place => serve(place));
    const nodes = await Promise.all(processes.map(({ ready }) => ready));
    const loads = await startLoads(rig, nodes);
    await untilMore(loads.withWebhook, 200, 100);
    const before = await memoryOf(nodes);

    for (let count = 0; count < RESTARTS; count += 1) {
      await setTimeout(Math.random() * 500);
      await server.restart('immediate');
      await untilMore(loads.withWebhook, 200);
    }
    for (const outage of OUTAGES) {
      await goAway(rig, nodes, loads, outage);
      await untilMore(loads.withWebhook, 200);
    }
    const after = await memoryOf(nodes);

    const plain = (await Promise.all(loads.without.map(load => load.stop()))).flat();
    const all = (await Promise.all(loads.withWebhook.map(load => load.stop()))).flat();
    const failures = [...loads.without, ...loads.withWebhook].flatMap(load => load.failures);
    expect(failures).toEqual([]);
    expect(new Set(plain.map(({ status }) => status))).toEqual(new Set([200]));
    const answers = all.filter(({ status }) => status === 200);
    const refused = all.filter(({ status }) => status !== 200);
    expect(refused.filter(({ code }) => code !== 'store_unavailable')).toEqual([]);
    for (const [index, bytes] of after.entries()) expect(bytes - before[index]!).toBeLessThan(150 * MIB);

    await vi.waitFor(() => expect(unmet(answers, receiver.posts)).toEqual([]), SETTLED);
    await untilNothingIsHeld(nodes);
    await stopAll(processes);
    expectLawful(answers, receiver.posts, () => false);
    const records = await openRecords(places[0]!);
    await expectSettled(records, answers);
    for await (const { record } of recordsOf(records, [...receiver.posts.keys()])) {
      expect(record?.attempts.filter(({ error }) => error === 'interrupted')).toEqual([]);
    }
  });
});
