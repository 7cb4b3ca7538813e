/**
 * Asynchronous calls to two nodes, one of which is killed again and again: the other carries out what it had
 * taken or begun. Every run ends once, and its app never gets more at once than it takes, whoever sends it.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { configureNode, openRecords } from '../support/nodes.ts';
import { startServer } from '../support/postgres.ts';
import { type Addresses, type Place, serve, type ServiceProcess } from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { type MoodyReceiver, type Node, openMoodyReceiver } from './moody-receiver.ts';
import { ATTEMPT_MS, LATEST_MS, LONG, SETTLED, stopAll, untilNothingIsHeld } from './nodes.ts';
import { createRunCallers, type RunCallers, WEBHOOK_SECRET } from './run-callers.ts';
import { openRunsApp, type RunsApp } from './runs-app.ts';
import { type Ends, expectEnded, expectOnRecord, lookAt } from './runs-verdict.ts';
import { ended, unmet } from './verdict.ts';

const [KILLS, RUNS_OF_EACH] = LONG ? [20, 100] : [2, 40];
/** Of each runtime's app, over both nodes. */
const CONCURRENCY = 4;

/** A node, through all its lives, and those who call it. */
interface Member {
  readonly node: Node;
  readonly place: Place;
  readonly callers: RunCallers;
  process: ServiceProcess;
  addresses: Addresses;
}

interface Rig {
  readonly app: RunsApp;
  readonly receiver: MoodyReceiver;
  readonly token: string;
  readonly members: readonly [Member, Member];
}

async function open(): Promise<Rig> {
  const server = await startServer();
  onTestFinished(() => server.close());
  const database = await server.createDatabase();
  const app = await openRunsApp(CONCURRENCY);
  const receiver = await openMoodyReceiver(WEBHOOK_SECRET);
  const token = await testToken();
  const startMember = async (node: Node): Promise<Member> => {
    const webhooks = { attemptTimeout: `${ATTEMPT_MS}ms` };
    const place = configureNode(database, { apps: app.apps, standardWebhooks: node === 1, webhooks });
    const process = serve(place);
    const addresses = await process.ready;
    const callers = createRunCallers({ token, target: receiver.url });
    callers.aim(addresses.port);
    return { node, place, callers, process, addresses };
  };
  return { app, receiver, token, members: await Promise.all([startMember(0), startMember(1)]) };
}

const acceptedBy = (members: readonly Member[]) => members.flatMap(({ callers }) => callers.accepted);

/** Kills one at a random moment while both are called; the other ends all that was accepted until then. */
async function killOne({ members, receiver, token }: Rig, node: Node, ends: Ends): Promise<void> {
  const [dead, other] = [members[node], members[node === 0 ? 1 : 0]];
  const accepted = members.map(({ callers }) => callers.accept(RUNS_OF_EACH / 2));
  await setTimeout(Math.random() * LATEST_MS);
  await dead.process.kill();
  dead.callers.aim(undefined);
  await receiver.nextLife(node);
  const runs = acceptedBy(members);
  await lookAt({ base: other.addresses.base, token }, runs, ends, '30s');
  expect(runs.filter(({ runId }) => !ends.has(runId))).toEqual([]);
  dead.process = serve(dead.place);
  dead.addresses = await dead.process.ready;
  dead.callers.aim(dead.addresses.port);
  await Promise.all(accepted);
}

describe('asynchronous calls to two nodes, one of which is killed', () => {
  it(`${KILLS} times: the other carries them out, and all of them end once`, async () => {
    const rig = await open();
    const { app, receiver, token, members } = rig;
    const ends: Ends = new Map();
    for (let kill = 0; kill < KILLS; kill += 1) await killOne(rig, kill % 2 === 0 ? 0 : 1, ends);

    const runs = acceptedBy(members);
    await lookAt({ base: members[0].addresses.base, token }, runs, ends, '60s');
    const delivered = runs.filter(({ webhook }) => webhook);
    await vi.waitFor(() => expect(unmet(delivered, receiver.posts)).toEqual([]), SETTLED);
    await untilNothingIsHeld(members.map(({ addresses }) => addresses));
    await stopAll(members.map(({ process }) => process));

    expect(members.flatMap(({ callers }) => callers.refused)).toEqual([]);
    expect(runs.length).toBe(KILLS * RUNS_OF_EACH);
    expectEnded(runs, ends, app);
    expect(Math.max(...Object.values(app.peaks))).toBeLessThanOrEqual(CONCURRENCY);
    const store = await openRecords(members[0].place);
    await expectOnRecord(store, { runs, ends, receiver, lost: ended });
    for (const { place } of members) expect(readdirSync(join(place.data, 'scratch'))).toEqual([]);
  });
});
