/**
 * Three nodes behind a balancer, stopped and started one after the other under load, as a new version would
 * be rolled out: no caller notices, and no delivery is lost, repeated or late.
 */
import { describe, expect, it, vi } from 'vitest';
import { openBalancer } from '../support/balancer.ts';
import { startLoad, type WholeAnswer } from '../support/load.ts';
import { openRecords } from '../support/nodes.ts';
import { serve } from '../support/process.ts';
import { testToken } from '../support/service.ts';
import type { MoodyReceiver } from './moody-receiver.ts';
import { LONG, prepare, SETTLED, SLACK_MS, SOON, stopAll, TAKEOVER_MS, untilNothingIsHeld } from './nodes.ts';
import { expectLawful, expectSettled, unmet } from './verdict.ts';

const ROUNDS = LONG ? 10 : 1;

/** From the end of a caller's answer to the first attempt. */
function waitsOf(answers: readonly WholeAnswer[], { posts }: MoodyReceiver): number[] {
  return answers.map(({ runId, at }) => posts.get(runId)![0]!.at - at);
}

describe('three nodes that are restarted one after the other under load', () => {
  it(`${ROUNDS === 1 ? 'once' : `${ROUNDS} times`}: no caller notices, and no delivery is late`, async () => {
    const { places, receiver } = await prepare(3);
    const balancer = await openBalancer();
    const processes = places.map(place => serve(place));
    const addresses = await Promise.all(processes.map(({ ready }) => ready));
    addresses.forEach((each, index) => balancer.put(String(index), each));
    const load = startLoad({ token: await testToken(), target: receiver.url });
    const untilBusy = async (): Promise<void> => {
      const before = load.answers.length;
      await vi.waitUntil(() => load.answers.length > before + 100, SOON);
    };

    load.aim(balancer.port);
    for (let count = 0; count < ROUNDS * places.length; count += 1) {
      const index = count % places.length;
      await untilBusy();
      expect(await processes[index]!.stop()).toEqual({ code: 0, signal: null });
      processes[index] = serve(places[index]!);
      addresses[index] = await processes[index].ready;
      balancer.put(String(index), addresses[index]);
    }
    await untilBusy();
    const answers = await load.stop();

    expect(load.failures).toEqual([]);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    await vi.waitFor(() => expect(unmet(answers, receiver.posts)).toEqual([]), SETTLED);
    await untilNothingIsHeld(addresses);
    await stopAll(processes);
    expectLawful(answers, receiver.posts, () => false);
    expect(Math.max(...waitsOf(answers, receiver))).toBeLessThan(TAKEOVER_MS + SLACK_MS);
    const records = await openRecords(places[0]!);
    await expectSettled(records, answers);
  });
});
