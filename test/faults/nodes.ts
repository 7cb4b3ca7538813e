/**
 * Nodes on a PostgreSQL server of their own, an app behind them and a moody receiver in front of them: what
 * the fault tests of many nodes start from, and how they end.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { type Load, startLoad } from '../support/load.ts';
import { configureNode, openRecords } from '../support/nodes.ts';
import { type PostgresServer, startServer } from '../support/postgres.ts';
import { type Addresses, type Place, readMetric, serve, type ServiceProcess } from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { type MoodyReceiver, type Node, openMoodyReceiver } from './moody-receiver.ts';
import { openSizedApp } from './sized-app.ts';
import { expectLawful, expectSettled, type Lost, unmet } from './verdict.ts';

export const LONG = process.env['AFTERWORD_FAULTS'] === 'long';
/** The latest moment of a fault after everything goes well again. */
export const LATEST_MS = 900;
export const SETTLED = { timeout: 40_000, interval: 100 };
export const SOON = { timeout: 20_000, interval: 20 };
/** What a dead node held is sent on within this time. */
export const TAKEOVER_MS = 5_000;
/** For once, on a machine that has other things to do. */
export const SLACK_MS = 5_000;
export const ATTEMPT_MS = 3_000;
/** Attempts of one node in flight, since there is one target. */
export const PER_TARGET = 32;

/** Calls at once to each of two nodes. */
const LANES = 6;

export interface Rig {
  readonly server: PostgresServer;
  readonly receiver: MoodyReceiver;
  readonly places: readonly Place[];
}

/** The second of two nodes is known by its headers, as the receiver expects it. */
export async function prepare(nodes: 2 | 3): Promise<Rig> {
  const server = await startServer();
  onTestFinished(() => server.close());
  const database = await server.createDatabase();
  const apps = await openSizedApp();
  const receiver = await openMoodyReceiver('the secret of the load');
  const places = Array.from({ length: nodes }, (_, index) =>
    configureNode(database, {
      apps,
      standardWebhooks: nodes === 2 && index === 1,
      // The promise is that of the disk: an answer that is let go before its delivery is stored has none.
      webhooks: { attemptTimeout: `${ATTEMPT_MS}ms`, commitWait: '10s', perTarget: PER_TARGET },
    }),
  );
  return { server, receiver, places };
}

export async function untilReadiness({ admin }: Addresses, status: number): Promise<void> {
  await vi.waitFor(async () => expect((await fetch(`${admin}/readyz`)).status).toBe(status), SOON);
}

export async function untilNothingIsHeld(nodes: readonly Addresses[]): Promise<void> {
  for (const node of nodes) {
    await vi.waitFor(async () => expect(await readMetric(node, 'deliveries_held')).toBe(0), SETTLED);
  }
}

/** Throws unless all end as they should. */
export async function stopAll(processes: readonly ServiceProcess[]): Promise<void> {
  const endings = await Promise.all(processes.map(process => process.stop()));
  expect(endings).toEqual(processes.map(() => ({ code: 0, signal: null })));
}

/** A node, through all its lives, and those who call it. */
export interface Member {
  readonly node: Node;
  readonly place: Place;
  readonly load: Load;
  process: ServiceProcess;
  addresses: Addresses;
}

async function startMember({ places, receiver }: Rig, node: Node): Promise<Member> {
  const place = places[node]!;
  const process = serve(place);
  const addresses = await process.ready;
  const load = startLoad({ token: await testToken(), target: receiver.url, lanes: LANES });
  load.aim(addresses.port);
  return { node, place, load, process, addresses };
}

export async function startBoth(rig: Rig): Promise<readonly [Member, Member]> {
  return Promise.all([startMember(rig, 0), startMember(rig, 1)]);
}

export async function untilBusy(members: readonly Member[]): Promise<void> {
  const before = members.map(({ load }) => load.answers.length);
  await vi.waitUntil(
    () => members.every(({ load }, index) => load.answers.length > before[index]! + 50),
    SOON,
  );
}

/** Lets everything come to its end, and throws unless all went as it should; gives what is on record. */
export async function conclude(
  { receiver: { posts } }: Rig,
  members: readonly Member[],
  lost: Lost,
): Promise<Store> {
  const all = (await Promise.all(members.map(({ load }) => load.stop()))).flat();
  const answers = all.filter(({ status }) => status === 200);
  // A node that has been away for long refuses what comes before it has reached the database again.
  const others = all.filter(({ status, code }) => status !== 200 && code !== 'store_unavailable');
  expect(others).toEqual([]);
  await vi.waitFor(() => expect(unmet(answers, posts)).toEqual([]), SETTLED);
  await untilNothingIsHeld(members.map(({ addresses }) => addresses));
  await stopAll(members.map(({ process }) => process));
  expectLawful(answers, posts, lost);
  const records = await openRecords(members[0]!.place);
  await expectSettled(records, answers);
  for (const { place } of members) expect(readdirSync(join(place.data, 'scratch'))).toEqual([]);
  return records;
}
